"""The work of one process on a GPU: the cells and operators of a model, or single operators."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlcd_bench.learn.attended import Tell
from mlcd_bench.learn.table import Tables, key
from mlcd_bench.learn.torch_device import Cuda, Device, Processor
from mlcd_bench.learn.torch_measure import Cells, Loaded, Point, measured, operators, profiled_batches
from mlcd_bench.learn.torch_model import TorchModel
from mlcd_bench.learn.torch_operators import OPERATORS
from mlcd_bench.learn.torch_zoo import MODELS

Cell = tuple[str, int, int]
BY_NAME = {model.name: model for model in (*MODELS, *OPERATORS)}


@dataclass(frozen=True)
class Work:
    """Models or single operators, by name, so that they can be sent to any process."""

    names: tuple[str, ...]
    alone: bool = False

    @property
    def models(self) -> tuple[TorchModel, ...]:
        """From the zoo."""
        return tuple(BY_NAME[name] for name in self.names)


@dataclass(frozen=True)
class Plan:
    """Output folder, cells, device, and deadline (time.monotonic)."""

    tables: Tables
    cells: Cells
    device: str
    until: float
    by_stream: bool = True
    start: str = "fork"

    def open(self) -> Device:
        """Open the device in this process."""
        if self.device == "cpu":
            return Processor()
        device = Cuda()
        device.by_stream = self.by_stream
        return device

    def left(self, name: str, alone: bool) -> list[Cell]:
        """The untried cells of a model."""
        table, column = (self.tables.curves, "operator") if alone else (self.tables.points, "model")
        tried = table.keys(column, *Cells.KNOBS) | self.tables.failed.keys("model", *Cells.KNOBS)
        return [cell for cell in self.cells.all() if key(name, *cell) not in tried]

    def profiles_left(self, name: str) -> list[tuple[str, int]]:
        """Precision and batch of the missing profiles; none for a model that runs in no cell."""
        if (name,) not in self.tables.points.keys("model"):
            return []
        there = self.tables.operators.keys("model", "precision", "batch")
        batches = profiled_batches(self.cells.batch)
        wanted = [(precision, batch) for precision in self.cells.precision for batch in batches]
        return [each for each in wanted if key(name, *each) not in there]

    def is_done(self, work: Work) -> bool:
        """Whether all of it is measured."""
        cells = any(self.left(name, work.alone) for name in work.names)
        return not cells and (work.alone or not any(self.profiles_left(name) for name in work.names))

    @property
    def time_is_up(self) -> bool:
        """Whether to stop before the next cell."""
        return time.monotonic() > self.until


def works(models: Sequence[str], alone: Sequence[str]) -> Iterator[Work]:
    """Models one by one, interleaved with operators, so that an interrupted measurement has both."""
    rest = list(alone)
    for place, model in enumerate(models):
        yield Work((model,))
        if place % 4 == 3 and rest:
            yield Work(tuple(rest[:3]), alone=True)
            rest = rest[3:]
    if rest:
        yield Work(tuple(rest), alone=True)


def measure(work: Work, plan: Plan, tell: Tell) -> None:
    """Measure every untried cell. Reports each before it is tried, so that the parent knows which one broke it."""
    device = plan.open()
    for model in work.models:
        left = plan.left(model.name, work.alone)
        for precision in plan.cells.precision:
            due = [cell for cell in left if cell[0] == precision]
            if plan.time_is_up or not due:
                continue
            tell((model.name, due[0]))
            try:
                loaded = Loaded(model, device, precision)
            except Exception as error:  # any error of a library: the model is recorded as failed
                reason = f"not built: {type(error).__name__}: {' '.join(str(error).split())[:120]}"
                plan.tables.failed.append(failed(model.name, cell, reason) for cell in due)
                continue
            _measure_cells(loaded, due, work.alone, plan, tell)
            del loaded
            device.forget_peak()


def profile(work: Work, plan: Plan, tell: Tell) -> None:
    """Make every missing profile. In another process, since a profiler may slow down later passes."""
    device = plan.open()
    for model in work.models:
        for precision, batch in plan.profiles_left(model.name):
            tell((model.name, None))
            try:
                plan.tables.operators.append(operators(Loaded(model, device, precision), batch))
            except RuntimeError as error:
                reason = " ".join(str(error).split())[:160]
                print(f"  {model.name}: no profile in {precision} at batch {batch}: {reason}", flush=True)


def _measure_cells(loaded: Loaded, due: Sequence[Cell], alone: bool, plan: Plan, tell: Tell) -> None:
    name = loaded.model.name
    for cell in due:
        if plan.time_is_up:
            return
        tell((name, cell))
        point = measured(loaded, cell[1], cell[2])
        if point.reason:
            plan.tables.failed.append([failed(name, cell, point.reason)])
            if not loaded.device.works():
                sys.exit(3)
        elif alone:
            plan.tables.curves.append([{"operator": name, **point.knobs, "rate": point.rate}])
        else:
            plan.tables.points.append([{**loaded.facts, **point.row()}])


def failed(model: str, cell: Cell, reason: str) -> dict[str, object]:
    """A row of failed.csv."""
    return {"model": model, **Point(*cell).knobs, "reason": reason}
