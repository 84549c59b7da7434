"""A knowledge base as a folder of files that anybody can read: docs/reference/knowledge.md describes them.

knowledge.json        what was measured, on what, when and how
points.csv            a row for each model and cell: what it is, its rate, latencies and memory
operators.csv         a row for each operator of a model's profile
host.csv              a row for each kind of input and number of cores: requests a second that they prepare

operator_curves.csv, of operators by themselves, is not read by any search.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError
from mlcd.planners.serve.knobs import Knobs
from mlcd.planners.serve.knowledge.lines import as_knob, read_lines
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.nouns import Figure, ModelFacts, Operator, Profile

ABOUT, POINTS, OPERATORS, HOST = "knowledge.json", "points.csv", "operators.csv", "host.csv"
FACTS = ("model", "family", "inputs", "weights_mb", "parameters")
OPERATOR_COLUMNS = ("model", "precision", "batch", "operator", "calls", "seconds", "memory_mb")
HOST_COLUMNS = ("input", "cores", "requests_per_s")


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
            raise line.error(f"{told.name} is already measured with these settings; remove one of the two lines")
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
