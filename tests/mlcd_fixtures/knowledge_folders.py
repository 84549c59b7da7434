"""Knowledge bases written to folders, as `mlcd learn` would have measured them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from mlcd.planners.serve.known_models import (
    ABOUT,
    FACTS,
    HOST,
    HOST_COLUMNS,
    OPERATOR_COLUMNS,
    OPERATORS,
    POINTS,
    Anatomy,
    Knowledge,
    SeenModel,
)
from mlcd.planners.serve.nouns import Figure


def write_knowledge(folder: Path, knowledge: Knowledge) -> None:
    """Write it so that `read_knowledge` gives the same."""
    folder.mkdir(parents=True, exist_ok=True)
    anatomy = knowledge.anatomy
    about = {
        "kind": str(knowledge.kind),
        "anatomy": {"cell": list(anatomy.cell), "host": anatomy.host, "memory": anatomy.memory},
        "resources": knowledge.resources,
        "source": knowledge.source,
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    used = {figure for model in knowledge.models for cell in model.cells.values() for figure in cell.figures}
    figures = [figure for figure in Figure if figure in used]
    columns = (*FACTS, *anatomy.cell, "rate", *(f"{figure}_s" for figure in figures), "peak_gb")
    rows = (row for model in knowledge.models for row in _point_rows(model, anatomy, figures))
    _write(folder / POINTS, columns, rows)
    _write(folder / OPERATORS, OPERATOR_COLUMNS, (row for model in knowledge.models for row in _profile_rows(model)))
    hosts = ((kind, *pair) for kind, rates in knowledge.host_rates.items() for pair in rates.items())
    _write(folder / HOST, HOST_COLUMNS, hosts)


def _point_rows(model: SeenModel, anatomy: Anatomy, figures: Sequence[Figure]) -> Iterable[Sequence[object]]:
    facts = model.facts
    head = (facts.name, facts.family, facts.inputs, _or_empty(facts.weights_mb), _or_empty(facts.parameters))
    if not model.cells:
        yield (*head, *("" for _ in anatomy.cell), "", *("" for _ in figures), "")
    for knobs, cell in model.cells.items():
        told = (_or_empty(cell.figures.get(figure)) for figure in figures)
        yield (*head, *(value for _, value in knobs), cell.rate, *told, _or_empty(cell.peak_gb))


def _profile_rows(model: SeenModel) -> Iterable[Sequence[object]]:
    for profile in model.facts.profiles:
        for each in profile.operators:
            head = (model.facts.name, profile.precision, profile.batch)
            yield (*head, each.name, each.calls, each.seconds, each.memory_mb)


def _or_empty(value: float | None) -> object:
    return "" if value is None else value


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
