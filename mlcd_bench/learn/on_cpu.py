"""The offline phase on a CPU: every ONNX model of a folder over precision, threads and batch, by ONNX Runtime.

Models are load-tested through our own server, as in trials of `mlcd serve`, or, faster, their passes are timed in
process. Single operators are always timed in process.

It continues where the files end. What cannot be measured is reported and left out: an invalid ONNX file, a precision to
which a model cannot be converted, a batch that does not fit.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from mlcd.clouds.servers.quantise import at_precision
from mlcd.clouds.servers.settings import PRECISIONS
from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.known_models import read_about
from mlcd.planners.serve.nouns import Knob, KnobTable
from mlcd.planners.serve.operators.onnx_file import OnnxModel, open_model
from mlcd.planners.serve.operators.onnx_profile import BATCHES, family, kind_of_input, profile_onnx
from mlcd_bench.learn.cells_process import Batch, Stopped, measure_batches
from mlcd_bench.learn.onnx_operators import OPERATORS, Alone, write_operators
from mlcd_bench.learn.table import Table, Tables, key, profile_rows
from mlcd_bench.learn.trials import measure_trials

CELL = ("precision", "threads", "batch")
BESIDES = ("memory_gb", "max_wait_ms")
"""Knobs of a server that are not varied: memory is measured, and a wait is known."""
USUAL: Mapping[str, tuple[Knob, ...]] = {"precision": ("fp32",), "threads": (1,), "batch": (1,)}

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Cells:
    """The varied knobs."""

    precisions: tuple[str, ...]
    threads: tuple[int, ...]
    batches: tuple[int, ...]

    @classmethod
    def of(cls, table: KnobTable, cores: int | None = None) -> Cells:
        """From a file of knobs, with defaults for knobs that it does not name."""
        for name in table.knobs:
            if name not in (*CELL, *BESIDES):
                raise UnknownName("knob to learn about on a CPU", name, (*CELL, *BESIDES))
        precisions, threads, batches = (table.knobs.get(name, USUAL[name]) for name in CELL)
        for precision in precisions:
            if precision not in PRECISIONS:
                raise UnknownName("precision", str(precision), PRECISIONS)
        for name, values in (("threads", threads), ("batch", batches)):
            if any(value != int(value) for value in map(float, values)):
                raise UserError(f"knobs: {name} must be whole numbers, such as [1, 2, 4]")
        most = cores or len(os.sched_getaffinity(0))
        if max(map(int, threads)) > most:
            raise UserError(f"knobs: threads {max(map(int, threads))}: this machine has {most} cores")
        return cls(tuple(map(str, precisions)), tuple(map(int, threads)), tuple(map(int, batches)))


@dataclass(frozen=True)
class Learning:
    """Output folder, varied knobs, and a callback for messages. `stop`: whether to stop.

    `served`: measure models by trials of a server instead of passes in process.
    """

    folder: Path
    cells: Cells
    served: bool = True
    shapes: Mapping[str, int] = field(default_factory=dict)
    tell: Tell = print
    stop: Callable[[], bool] = lambda: False

    @property
    def tables(self) -> Tables:
        """The files of the folder."""
        return Tables(self.folder, CELL)

    def models(self, paths: Sequence[Path]) -> list[str]:
        """Measure these models, and return the names of those that ran in some cell."""
        seen: dict[str, Path] = {}
        with TemporaryDirectory(prefix="mlcd-learn-") as scratch:
            for path in paths:
                if seen.setdefault(path.stem, path) != path:
                    self.tell(f"{path}: left out: there already is a {path.stem}")
                    continue
                if self.stop():
                    raise Stopped
                try:
                    self._model(open_model(path), Path(scratch))
                except UserError as error:
                    self.tell(f"{error}; left out")
        ran = {name for (name,) in self.tables.points.keys("model")}
        return [name for name in seen if name in ran]

    def operators(self, which: Sequence[Alone] = OPERATORS) -> None:
        """Measure single operators."""
        with TemporaryDirectory(prefix="mlcd-learn-") as scratch:
            for path in write_operators(Path(scratch) / "alone", which):
                for at, cell, rows in self._runs(path, self.tables.curves, Path(scratch), {}):
                    self.tables.curves.append(
                        {"operator": path.stem, **cell, "batch": row.batch, "rate": row.rate} for row in rows
                    )
                    self.tell(f"{path.stem}, {at}: {_best(rows)}")

    def _model(self, model: OnnxModel, scratch: Path) -> None:
        name = model.path.stem
        facts = {
            "model": name,
            "family": family(model),
            "inputs": kind_of_input(model, self.shapes),
            "weights_mb": model.weights_mb,
            "parameters": model.parameters / 1e9,
        }
        shapes = {axis: size for axis, size in self.shapes.items() if axis in model.free_axes}
        for at, cell, rows in self._runs(model.path, self.tables.points, scratch, shapes):
            self.tables.points.append({**facts, **cell, **_row(row)} for row in rows)
            self.tell(f"{name}, {at}: {_best(rows)}")
        self._profiles(model, scratch, shapes)

    def _runs(
        self, path: Path, table: Table, scratch: Path, shapes: Mapping[str, int]
    ) -> Iterator[tuple[str, dict[str, object], list[Batch]]]:
        """For every precision and number of threads with untried batches: the batches that ran."""
        name = path.stem
        tried = table.keys(table.columns[0], *CELL) | self.tables.failed.keys("model", *CELL)
        for precision, threads in product(self.cells.precisions, self.cells.threads):
            left = [each for each in self.cells.batches if key(name, precision, threads, each) not in tried]
            if not left:
                continue
            cell: dict[str, object] = {"precision": precision, "threads": threads}
            alone = table == self.tables.curves
            try:
                if self.served and not alone:
                    measured = measure_trials(path, precision, threads, left, shapes, self.stop)
                else:
                    file = self._file(path, precision, scratch, alone)
                    measured = measure_batches(file, threads, left, shapes, self.stop)
            except UserError as error:
                if self.stop():  # Ctrl-C also interrupted the quantisation
                    raise Stopped from None
                measured = [Batch(each, reason=str(error)) for each in left]
            lost = [row for row in measured if row.reason]
            if lost:
                head = {"model": name, **cell}
                self.tables.failed.append({**head, "batch": row.batch, "reason": row.reason} for row in lost)
            yield f"{precision}, {threads} thread{'s' * (threads > 1)}", cell, [row for row in measured if row.rate]

    def _file(self, path: Path, precision: str, scratch: Path, alone: bool) -> Path:
        try:
            return at_precision(path, precision, scratch / "quantised")
        except UserError:
            if alone:  # in a quantised model, an operator without an int8 form runs unquantised
                return path
            raise

    def _profiles(self, model: OnnxModel, scratch: Path, shapes: Mapping[str, int]) -> None:
        name = model.path.stem
        there = self.tables.operators.keys("model", "precision", "batch")
        ran = self.tables.points.keys("model", "precision")
        batches = BATCHES if model.batch is None else (model.batch,)
        for precision in self.cells.precisions:
            left = [batch for batch in batches if key(name, precision, batch) not in there]
            if left and key(name, precision) in ran:
                file = at_precision(model.path, precision, scratch / "quantised")
                for profile in profile_onnx(open_model(file), left, shapes):
                    self.tables.operators.append(profile_rows(name, replace(profile, precision=precision)))


def _row(row: Batch) -> dict[str, object]:
    peak = "" if row.peak_gb is None else row.peak_gb
    return {"batch": row.batch, "rate": row.rate, "p50_s": row.p50_s, "p95_s": row.p95_s, "peak_gb": peak}


def _best(rows: Sequence[Batch]) -> str:
    if not rows:
        return "did not run; failed.csv says why"
    rate, batch = max((row.rate or 0.0, row.batch) for row in rows)
    return f"{len(rows)} batches, {rate:,.0f}/s at {batch}"


def machine() -> str:
    """Processor and number of cores of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def describe(folder: Path, day: str, command: str, *, served: bool = True) -> None:
    """Write knowledge.json. An error if the folder has measurements of another machine."""
    import onnxruntime

    path = folder / "knowledge.json"
    if path.exists():
        _, anatomy, _, source = read_about(path)
        if not source.startswith(machine()) or anatomy.cell != CELL:
            raise UserError(f"{folder}: holds measurements of another machine; choose another folder with --to")
        return
    how = "load tests of MLCD's own server, twice as many clients as fit a batch" if served else "passes in process"
    source = (
        f"{machine()}; Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}; {how}, "
        f"GB of 1e9 bytes; measured {day} by {command}"
    )
    parts = {"cell": list(CELL), "host": "", "memory": "memory_gb"}
    about = {"kind": "device", "anatomy": parts, "resources": {}, "source": source}
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
