"""`python -m mlcd_bench.learn.onnx_cells MODEL`: time a model at several batches, as our server runs it.

Writes a line of JSON after each batch: its passes in seconds, and the peak memory of the process. Batches increase, so
that memory of a larger one is not counted for a smaller one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from mlcd.clouds.servers.model import Model
from mlcd.clouds.servers.settings import peak_gb, server_cores
from mlcd.core.errors import UserError
from mlcd.planners.serve.operators.onnx_file import open_model
from mlcd.planners.serve.operators.onnx_session import example_feed, runtime_errors
from mlcd_bench.learn.timing import timed


def cells(path: Path, threads: int, batches: Sequence[int], shapes: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """The result of each batch; `reason` if it did not run."""
    with contextlib.suppress(ImportError):  # a server has it in memory, too
        import_module("aiohttp.web")
    proto, model = open_model(path), Model(path, path.stem, threads)
    for batch in sorted(batches):
        try:
            feed = example_feed(proto, batch, shapes)
            with runtime_errors(path):
                seconds = timed(lambda feed=feed: _once(model, feed))  # type: ignore[misc]
            yield {"batch": batch, "seconds": seconds, "peak_gb": peak_gb([os.getpid()])}
        except UserError as error:
            yield {"batch": batch, "reason": str(error)}


def _once(model: Model, feed: Mapping[str, object]) -> float:
    began = time.perf_counter()
    model.run(feed)  # type: ignore[arg-type]
    return time.perf_counter() - began


def main() -> None:
    """Read the arguments, write the lines."""
    parser = argparse.ArgumentParser("python -m mlcd_bench.learn.onnx_cells", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=lambda text: tuple(map(int, text.split(","))), default=(1,))
    parser.add_argument("--shapes", type=json.loads, default={}, help='such as {"sequence": 128}')
    given = parser.parse_args()
    os.sched_setaffinity(0, server_cores(given.threads))
    for cell in cells(given.model, given.threads, given.batches, given.shapes):
        print(json.dumps(cell), flush=True)


if __name__ == "__main__":
    main()
