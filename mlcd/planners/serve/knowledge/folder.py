"""A knowledge base as a folder of files that anybody can read: docs/reference/knowledge.md describes them.

knowledge.json        what was measured, on what, when and how
points.csv            a row for each model and cell: what it is, its rate, latencies and memory
operators.csv         a row for each operator of a model's profile
host.csv              a row for each kind of input and number of cores: requests a second that they prepare
operator_curves.csv   a row for each operator by itself and cell: its rate
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError
from mlcd.planners.serve.knobs import Knob, Knobs
from mlcd.planners.serve.knowledge.lines import as_knob, read_lines
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.nouns import Figure, ModelFacts, Operator, Profile

ABOUT, POINTS, OPERATORS, HOST = "knowledge.json", "points.csv", "operators.csv", "host.csv"
CURVES = "operator_curves.csv"
FACTS = ("model", "family", "inputs", "weights_mb", "parameters")
OPERATOR_COLUMNS = ("model", "precision", "batch", "operator", "calls", "seconds", "memory_mb")
HOST_COLUMNS = ("input", "cores", "requests_per_s")
CURVE_COLUMNS = ("operator", "rate")

Curves = Mapping[str, Mapping[Knobs, float]]
"""For each operator by itself: its rate in every cell that was measured."""


def read_knowledge(folder: Path) -> Knowledge:
    """The knowledge of a folder; `RecordingError` says what is wrong, and where."""
    kind, anatomy, resources, source = read_about(folder / ABOUT)
    profiles = _read_profiles(folder / OPERATORS)
    models = _read_models(folder / POINTS, anatomy, profiles)
    hosts: dict[str, dict[float, float]] = {}
    for line in _lines_if_there(folder / HOST, HOST_COLUMNS):
        rates = hosts.setdefault(line.text("input"), {})
        rates[line.number("cores")] = line.number("requests_per_s", above_zero=True)
    return Knowledge(kind, anatomy, models, hosts, resources, source)


def read_curves(folder: Path) -> Curves:
    """The rates of operators by themselves; none if nobody measured them."""
    cell = read_about(folder / ABOUT)[1].cell
    curves: dict[str, dict[Knobs, float]] = {}
    for line in _lines_if_there(folder / CURVES, (*CURVE_COLUMNS, *cell)):
        curves.setdefault(line.text("operator"), {})[_knobs(line, cell)] = line.number("rate", above_zero=True)
    return curves


def write_knowledge(folder: Path, knowledge: Knowledge, curves: Curves | None = None) -> None:
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
    alone = (
        (operator, *(_written(value) for _, value in knobs), rate)
        for operator, rates in (curves or {}).items()
        for knobs, rate in rates.items()
    )
    _write(folder / CURVES, ("operator", *anatomy.cell, "rate"), alone)


def read_about(path: Path) -> tuple[Kind, Anatomy, Mapping[str, Any], str]:
    """What knowledge.json says: the kind, which knob does what, numbers of knobs, the source."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; a knowledge folder is made by `mlcd learn`") from None
    except json.JSONDecodeError as error:
        raise RecordingError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise RecordingError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        anatomy = Anatomy(
            tuple(map(str, told["anatomy"]["cell"])), *(str(told["anatomy"][n]) for n in ("host", "memory"))
        )
        return Kind(told["kind"]), anatomy, dict(told.get("resources", {})), str(told.get("source", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"{path}:1: not as expected: {error}; it needs kind and anatomy: cell, host, memory"
        ) from None


def _read_models(path: Path, anatomy: Anatomy, profiles: Mapping[str, tuple[Profile, ...]]) -> tuple[SeenModel, ...]:
    facts: dict[str, tuple[ModelFacts, Line]] = {}
    cells: dict[str, dict[Knobs, Cell]] = {}
    for line in read_lines(path, (*FACTS, *anatomy.cell, "rate")):
        told = _facts(line, profiles)
        known, first = facts.setdefault(told.name, (told, line))
        if known != told:
            raise line.error(f"{told.name} is not what it is in {first.where}: family, inputs and sizes must agree")
        of_model = cells.setdefault(told.name, {})
        if not line.cells["rate"]:  # a model that ran nowhere is known, too
            continue
        knobs = _knobs(line, anatomy.cell)
        if knobs in of_model:
            raise line.error(f"{told.name} was measured there before; remove one of the two lines")
        of_model[knobs] = _cell(line)
    for name in profiles:
        if name not in facts:
            raise RecordingError(f"{path.parent / OPERATORS}: {name} has operators, but no line in {POINTS}")
    return tuple(SeenModel(told, cells[name]) for name, (told, _) in facts.items())


def _facts(line: Line, profiles: Mapping[str, tuple[Profile, ...]]) -> ModelFacts:
    name, sizes = line.text("model"), (line.perhaps("weights_mb"), line.perhaps("parameters"))
    return ModelFacts(name, line.cells["family"], line.cells["inputs"], *sizes, profiles.get(name, ()))


def _cell(line: Line) -> Cell:
    told = {figure: line.perhaps(f"{figure}_s") for figure in Figure}
    figures = {figure: seconds for figure, seconds in told.items() if seconds is not None}
    return Cell(line.number("rate", above_zero=True), figures, line.perhaps("peak_gb"))


def _knobs(line: Line, cell: Sequence[str]) -> Knobs:
    return tuple((name, as_knob(line.text(name))) for name in cell)


def _read_profiles(path: Path) -> dict[str, tuple[Profile, ...]]:
    passes: dict[tuple[str, str, int], list[Operator]] = {}
    for line in _lines_if_there(path, OPERATOR_COLUMNS):
        key = line.text("model"), line.cells["precision"], line.count("batch")
        sizes = line.number("seconds"), line.number("memory_mb")
        passes.setdefault(key, []).append(Operator(line.text("operator"), line.count("calls"), *sizes))
    found: dict[str, tuple[Profile, ...]] = {}
    for (model, precision, batch), operators in passes.items():
        found[model] = (*found.get(model, ()), Profile(batch, tuple(operators), precision))
    return found


def _lines_if_there(path: Path, columns: Sequence[str]) -> list[Line]:
    return read_lines(path, columns) if path.exists() else []


def _point_rows(model: SeenModel, anatomy: Anatomy, figures: Sequence[Figure]) -> Iterable[Sequence[object]]:
    facts = model.facts
    head = (facts.name, facts.family, facts.inputs, _or_empty(facts.weights_mb), _or_empty(facts.parameters))
    if not model.cells:
        yield (*head, *("" for _ in anatomy.cell), "", *("" for _ in figures), "")
    for knobs, cell in model.cells.items():
        told = (_or_empty(cell.figures.get(figure)) for figure in figures)
        yield (*head, *(_written(value) for _, value in knobs), cell.rate, *told, _or_empty(cell.peak_gb))


def _profile_rows(model: SeenModel) -> Iterable[Sequence[object]]:
    for profile in model.facts.profiles:
        for each in profile.operators:
            head = (model.facts.name, profile.precision, profile.batch)
            yield (*head, each.name, each.calls, each.seconds, each.memory_mb)


def _written(value: Knob) -> Knob:
    """A word that looks like a number would come back as one."""
    if as_knob(str(value)) != value:
        raise ValueError(f"the knob value '{value}' is a word that reads as a number")
    return value


def _or_empty(value: float | None) -> object:
    return "" if value is None else value


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
