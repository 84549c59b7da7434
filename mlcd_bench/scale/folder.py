"""A folder of measured step times and of training runs: throughput.csv and validation.csv, as Pollux published them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.errors import RecordingError

STEPS, RUNS = "throughput.csv", "validation.csv"
STEP_COLUMNS = ("model", "cluster", "num_nodes", "num_gpus", "local_batch", "step_time_s")
RUN_COLUMNS = ("model", "global_batch", "epoch", "iteration", "metric", "grad_sqr", "grad_var")


@dataclass(frozen=True)
class StepTime:
    """A measured step: `devices` of them on `nodes`, each with `local_batch` samples."""

    model: str
    cluster: str
    nodes: int
    devices: int
    local_batch: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """A training run at one batch size, evaluated once an epoch."""

    global_batch: float
    iterations: Floats
    """Done before each look."""
    metric: Floats
    grad_sqr: Floats
    grad_var: Floats


@dataclass(frozen=True)
class Folder:
    """All that was measured."""

    path: Path
    steps: tuple[StepTime, ...]
    runs: dict[str, tuple[Run, ...]]
    """By model, in order of batch size."""

    @property
    def models(self) -> list[str]:
        """Those with runs and with step times."""
        timed = {step.model for step in self.steps}
        return [model for model in self.runs if model in timed]

    @property
    def clusters(self) -> list[str]:
        """In order of appearance."""
        return list(dict.fromkeys(step.cluster for step in self.steps))


def read_folder(path: Path) -> Folder:
    """Read both files. A row that cannot be used is an error with its line."""
    if not path.is_dir():
        raise RecordingError(f"{path}: no such folder; expected one with {STEPS} and {RUNS}")
    steps = tuple(_step(path / STEPS, line, row) for line, row in _rows(path / STEPS, STEP_COLUMNS))
    evaluations: dict[tuple[str, float], list[list[float]]] = {}
    for line, row in _rows(path / RUNS, RUN_COLUMNS):
        where = path / RUNS, line, row
        evaluation = [_number(*where, "iteration", 0), _number(*where, "metric")]
        evaluation += [_number(*where, name, may_be_nan=True) for name in ("grad_sqr", "grad_var")]
        evaluations.setdefault((row["model"], _number(*where, "global_batch", 1)), []).append(evaluation)
    runs: dict[str, list[Run]] = {}
    for (model, batch), rows in sorted(evaluations.items(), key=lambda item: item[0][1]):
        runs.setdefault(model, []).append(Run(batch, *np.array(sorted(rows)).T))
    return Folder(path, steps, {model: tuple(found) for model, found in sorted(runs.items())})


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise RecordingError(f"{path}:1: no column {', '.join(missing)}")
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RecordingError(f"{path}: cannot be read: {reason}") from None
    if not rows:
        raise RecordingError(f"{path}: it has no rows")
    yield from rows


def _step(path: Path, line: int, row: dict[str, str]) -> StepTime:
    nodes, devices = (_number(path, line, row, name, 1) for name in ("num_nodes", "num_gpus"))
    batch, seconds = (_number(path, line, row, name, least) for name, least in (("local_batch", 1), ("step_time_s", 0)))
    if seconds == 0:
        raise RecordingError(f"{path}:{line}: step_time_s '{row['step_time_s']}': expected more than 0")
    return StepTime(row["model"], row["cluster"], int(nodes), int(devices), batch, seconds)


def _number(
    path: Path, line: int, row: dict[str, str], name: str, least: float = -np.inf, may_be_nan: bool = False
) -> float:
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        raise RecordingError(f"{path}:{line}: {name} '{row[name]}': expected a number") from None
    if may_be_nan:
        return value
    if not isfinite(value) or value < least:
        bound = f" of {least:g} or more" if np.isfinite(least) else ""
        raise RecordingError(f"{path}:{line}: {name} '{row[name]}': expected a finite number{bound}")
    return value
