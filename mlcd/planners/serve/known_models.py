"""Models that were measured before, from which a search for a new model learns, and how they are read from a folder.

cell        the knobs that determine what a model does on a device: its rate, latency and memory
composed    the result of a whole configuration: the slower of device and host, or out of memory

A knowledge base is a folder of text files (docs/reference/knowledge.md):

knowledge.json        what was measured, on which machine, when and how
points.csv            a row for each model and cell: facts of the model, rate, latencies and memory
operators.csv         a row for each operator of a model's profile
host.csv              a row for each kind of input and number of cores: requests a second that the host prepares

No search reads operator_curves.csv. Tables are read exactly: a name may begin with a space or contain a line break.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from mlcd.core.configuration import Configuration
from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError
from mlcd.memory.record_store import ABOUT, SHIPPED, KnowledgeBases
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Cap, Figure, Knob, Knobs, knobs_of

KEPT = 64
"""Size of the caches: enough for leave-one-out over a few dozen models."""


class ByIdentity:
    """A cache key that compares objects by identity, since comparing thousands of configurations by value is slow."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and all(a is b for a, b in zip(self.objects, other.objects, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(id(each) for each in self.objects))


class Kind(StrEnum):
    """What was varied when the models were measured; each kind has a belief of its own.

    DEVICE: partitions of one device. INSTANCES: instance types. LANGUAGE: number and type of GPUs, and users. ENGINES:
    deployments of language models (engine, GPUs, parallelism, precision).
    """

    DEVICE = "device"
    INSTANCES = "instances"
    LANGUAGE = "language"
    ENGINES = "engines"


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The role of each knob, by which one trial informs about many configurations.

    `cell`: the knobs that the device's work depends on. `host`: the number of cores that prepare requests. `memory`:
    the memory limit in GB. The latter two are empty if there is no such knob.
    """

    cell: tuple[str, ...]
    host: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured in one cell: answers a second, latency figures in seconds, memory in GB.

    `row`: its row in the source table, from 1 without the header; 0 if not needed. `levels`: results by concurrency,
    if that was swept; the cell itself is then the level with the largest rate.
    """

    rate: float
    figures: Mapping[Figure, float]
    peak_gb: float | None = None
    row: int = 0
    levels: Mapping[int, Cell] = field(default_factory=dict)

    def within(self, caps: Iterable[Cap]) -> Cell | None:
        """The level with the largest rate that meets these caps; None if none does. Unknown figures break their cap."""
        caps = tuple(caps)
        kept = [
            level
            for level in (self.levels.values() or (self,))
            if all(level.figures.get(cap.figure, math.inf) <= cap.at_most_s for cap in caps)
        ]
        return max(kept, key=lambda level: level.rate, default=None)


@dataclass(frozen=True)
class SeenModel:
    """A measured model with all its cells. A missing cell did not run."""

    facts: ModelFacts
    cells: Mapping[Knobs, Cell]


@dataclass(frozen=True)
class Knowledge:
    """Measured models of one kind, and data about the machines.

    `host_rates`: kind of input -> cores -> requests a second that they prepare. `resources`: numbers that describe the
    values of a knob, such as the bandwidth of a GPU type: knob -> value -> name -> number. `source`: where and when it
    was measured.
    """

    kind: Kind
    anatomy: Anatomy
    models: tuple[SeenModel, ...]
    host_rates: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    source: str = ""

    def without(self, *names: str) -> Knowledge:
        """Without these models."""
        return replace(self, models=tuple(model for model in self.models if model.facts.name not in names))

    def cell_of(self, configuration: Configuration) -> Knobs:
        """The knobs of a configuration that the device's work depends on."""
        settings = dict(knobs_of(configuration))
        return tuple((name, settings[name]) for name in self.anatomy.cell)

    def host_rate(self, inputs: str, configuration: Configuration) -> float | None:
        """Requests a second that the configuration's cores prepare; None if unknown or no limit."""
        cores = number_of(configuration, self.anatomy.host)
        return self.host_rates.get(inputs, {}).get(cores) if cores is not None else None

    def memory_gb(self, configuration: Configuration) -> float | None:
        """The memory limit of the configuration in GB; None if it has none."""
        return number_of(configuration, self.anatomy.memory)

    def composed(self, model: SeenModel, configuration: Configuration) -> Cell | None:
        """The result of the model on a whole configuration; None if it does not run."""
        cell = model.cells.get(self.cell_of(configuration))
        if cell is None:
            return None
        allowed, host = self.memory_gb(configuration), self.host_rate(model.facts.inputs, configuration)
        if allowed is not None and cell.peak_gb is not None and cell.peak_gb > allowed:
            return None
        return cell if host is None or host >= cell.rate else replace(cell, rate=host)


def number_of(configuration: Configuration, knob: str) -> float | None:
    """The value of a numeric knob of a configuration; None if there is no such knob, or it is text."""
    value = dict(knobs_of(configuration)).get(knob)
    return float(value) if isinstance(value, int | float) else None


POINTS, OPERATORS, HOST = "points.csv", "operators.csv", "host.csv"
FACTS = ("model", "family", "inputs", "weights_mb", "parameters")
OPERATOR_COLUMNS = ("model", "precision", "batch", "operator", "calls", "seconds", "memory_mb")
HOST_COLUMNS = ("input", "cores", "requests_per_s")


def knowledge_bases(own: Path = SHIPPED) -> KnowledgeBases[Knowledge]:
    """The knowledge bases that ship with MLCD, and those in a folder of the user's."""
    return KnowledgeBases(_base, own)


def _base(folder: Path) -> Knowledge:
    """Shipped ones never change and are read once, since results computed from one are cached by its identity."""
    return _read_once(folder) if folder.parent == SHIPPED else read_knowledge(folder)


def read_knowledge(folder: Path) -> Knowledge:
    """Read a knowledge base. RecordingError says what is wrong, and where."""
    kind, anatomy, resources, source = read_about(folder / ABOUT)
    models = _read_models(folder / POINTS, anatomy, _read_profiles(folder / OPERATORS))
    hosts: dict[str, dict[float, float]] = {}
    for line in _lines_if_exists(folder / HOST, HOST_COLUMNS):
        rates = hosts.setdefault(line.text("input"), {})
        rates[line.number("cores")] = line.number("requests_per_s", above_zero=True)
    return Knowledge(kind, anatomy, models, hosts, resources, source)


_read_once = cache(read_knowledge)


def read_about(path: Path) -> tuple[Kind, Anatomy, Mapping[str, Any], str]:
    """Read knowledge.json: the kind, the roles of the knobs, the resources, the source."""
    try:
        about = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise RecordingError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    try:
        anatomy = Anatomy(
            tuple(map(str, about["anatomy"]["cell"])), *(str(about["anatomy"][n]) for n in ("host", "memory"))
        )
        return Kind(about["kind"]), anatomy, dict(about.get("resources", {})), str(about.get("source", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"{path}:1: not as expected: {error}; it needs kind and anatomy: cell, host, memory"
        ) from None


def _read_models(path: Path, anatomy: Anatomy, profiles: Mapping[str, tuple[Profile, ...]]) -> tuple[SeenModel, ...]:
    facts: dict[str, tuple[ModelFacts, Line]] = {}
    cells: dict[str, dict[Knobs, Cell]] = {}
    for line in read_lines(path, (*FACTS, *anatomy.cell, "rate")):
        name, sizes = line.text("model"), (line.optional_number("weights_mb"), line.optional_number("parameters"))
        model = ModelFacts(name, line.cells["family"], line.cells["inputs"], *sizes, profiles.get(name, ()))
        known, first = facts.setdefault(name, (model, line))
        if known != model:
            raise line.error(f"{name} differs from {first.where}: family, inputs and sizes must be the same")
        of_model = cells.setdefault(name, {})
        if not line.cells["rate"]:  # a model that ran in no cell still has its facts
            continue
        knobs = tuple((each, as_knob(line.text(each))) for each in anatomy.cell)
        if knobs in of_model:
            raise line.error(f"{name} is already measured with these settings; remove one of the two lines")
        figures = {figure: line.optional_number(f"{figure}_s") for figure in Figure}
        known_s = {figure: seconds for figure, seconds in figures.items() if seconds is not None}
        of_model[knobs] = Cell(line.number("rate", above_zero=True), known_s, line.optional_number("peak_gb"))
    for name in profiles:
        if name not in facts:
            raise RecordingError(f"{path.parent / OPERATORS}: {name} has operators, but no line in {POINTS}")
    return tuple(SeenModel(model, cells[name]) for name, (model, _) in facts.items())


def _read_profiles(path: Path) -> dict[str, tuple[Profile, ...]]:
    return by_model(
        (
            (line.text("model"), line.cells["precision"], line.count("batch")),
            Operator(line.text("operator"), line.count("calls"), line.number("seconds"), line.number("memory_mb")),
        )
        for line in _lines_if_exists(path, OPERATOR_COLUMNS)
    )


def by_model(operators: Iterable[tuple[tuple[str, str, int], Operator]]) -> dict[str, tuple[Profile, ...]]:
    """Group operators, each with its (model, precision, batch), into the profiles of each model."""
    passes: dict[tuple[str, str, int], list[Operator]] = {}
    for key, operator in operators:
        passes.setdefault(key, []).append(operator)
    profiles: dict[str, tuple[Profile, ...]] = {}
    for (model, precision, batch), each in passes.items():
        profiles[model] = (*profiles.get(model, ()), Profile(batch, tuple(each), precision))
    return profiles


def _lines_if_exists(path: Path, columns: Sequence[str]) -> list[Line]:
    return read_lines(path, columns) if path.exists() else []


def read_lines(path: Path, columns: Sequence[str]) -> list[Line]:
    """The data lines of a CSV file with these columns."""
    text = _text(path).removeprefix("\ufeff")  # a spreadsheet may put a byte order mark in front
    return list(_lines(csv.reader(io.StringIO(text, newline=""), strict=True), path, columns))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; a knowledge folder is made by `mlcd learn`") from None
    except UnicodeDecodeError:
        raise RecordingError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error


def _lines(reader: Iterator[list[str]], path: Path, columns: Sequence[str]) -> Iterator[Line]:
    line = 1
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise RecordingError(f"{path}:1: missing column {', '.join(missing)}; expected {','.join(columns)}")
        for cells in reader:
            line = reader.line_num  # type: ignore[attr-defined]
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise RecordingError(f"{path}:{line}: {len(cells)} cells, but the header has {len(header)} columns")
            yield Line(f"{path}:{line}", dict(zip(header, cells, strict=True)), RecordingError)
    except csv.Error as error:
        raise RecordingError(f"{path}:{line + 1}: not a CSV line: {error}") from None


def as_knob(written: str) -> Knob:
    """Parse a knob's value: an integer, a float, or text."""
    for kind in (int, float):
        try:
            value = kind(written)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return written
