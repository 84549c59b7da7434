"""Measures a model at one precision and number of threads in a fresh process, so that memory counts from zero."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SILENT_S = 180.0
"""A process without output for so long counts as hung."""
LOOK_EVERY_S = 0.2
"""Interval at which a stop is checked."""


@dataclass(frozen=True)
class Batch:
    """The result of one batch size: answers a second, and latencies in seconds; `reason` if it did not run."""

    batch: int
    rate: float | None = None
    p50_s: float = 0.0
    p95_s: float = 0.0
    peak_gb: float | None = None
    reason: str = ""


class Stopped(Exception):
    """Stopped on request: batches without a result were not tried."""


def measure_batches(
    model: Path,
    threads: int,
    batches: Sequence[int],
    shapes: Mapping[str, int],
    stop: Callable[[], bool] = lambda: False,
    silent_s: float = SILENT_S,
) -> list[Batch]:
    """Every batch, in ascending order. A batch that ends the process, and all larger ones, did not run."""
    command = [sys.executable, "-m", "mlcd_bench.learn.onnx_cells", str(model), "--threads", str(threads)]
    command += ["--batches", ",".join(map(str, batches)), "--shapes", json.dumps(dict(shapes))]
    with tempfile.TemporaryFile() as complaints:
        # its own session, so that Ctrl-C at the terminal does not look like a crash of the model
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, start_new_session=True)
        try:
            lines = _lines(child, stop, silent_s)
        finally:
            child.kill()
            child.wait()
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    by_batch = {batch.batch: batch for batch in map(_batch, lines)}
    why = last[0] if last else f"its process ended with status {child.returncode}"
    return [by_batch.get(batch, Batch(batch, reason=why)) for batch in sorted(batches)]


def _lines(child: subprocess.Popen[bytes], stop: Callable[[], bool], silent_s: float) -> list[bytes]:
    """The output lines of the process until its end."""
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector, child.stdout as output:
        selector.register(output, selectors.EVENT_READ)
        lines: list[bytes] = []
        rest, silent = b"", 0.0
        while silent < silent_s:
            if stop():
                raise Stopped
            if not selector.select(LOOK_EVERY_S):
                silent += LOOK_EVERY_S
                continue
            read = output.read1(65_536)  # type: ignore[attr-defined]
            if not read:
                child.wait()
                break
            *whole, rest = (rest + read).split(b"\n")
            lines, silent = lines + whole, 0.0
        return lines


def _batch(line: bytes) -> Batch:
    row = json.loads(line)
    if "reason" in row:
        return Batch(row["batch"], reason=row["reason"])
    middle, high = (float(each) for each in np.quantile(row["seconds"], (0.5, 0.95)))
    return Batch(row["batch"], row["batch"] / middle, middle, high, row["peak_gb"])
