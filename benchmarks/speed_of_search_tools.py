"""The time to choose the next probe, by net-value and by common tools: one run, one machine, one thread.

62 types x 50 nodes after 20 probes. Each tool is used through its adapter, so its time is that of a whole step: the
study is built from the history, the model fitted, the acquisition maximised. Needs: pip install 'mlcd[bench]'.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from speed import JOB, NODES, PROBES, TYPES, history
from threadpoolctl import threadpool_limits

from mlcd.catalog import load_offers
from mlcd.core.configuration import Space
from mlcd.core.errors import MissingExtra
from mlcd.core.history import History
from mlcd.core.job import Search
from mlcd.core.strategy import Probe, Strategy
from mlcd.planners.train.planner import method
from mlcd.planners.train.space import grid
from mlcd_bench.tools import TOOLS, tool

OURS = "net-value"
REPEATS = 11
PACKAGES = ("mlcd", "numpy", "scipy", "scikit-learn", "optuna", "scikit-optimize", "smac", "botorch", "torch")


def milliseconds(strategy: Strategy, space: Space, past: History) -> list[float]:
    """Milliseconds of each of many equal choices, without the first, which loads and compiles."""
    took = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        step = strategy.next_step(JOB, space, past)
        took.append(1_000 * (time.perf_counter() - started))
    assert strategy == method(Search(OURS)) or isinstance(step, Probe), "it did not ask its model"
    return took[1:]


def versions() -> str:
    """The installed packages with their versions, and the missing ones."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def main() -> None:
    print(f"{versions()}; Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    space = grid(load_offers(("aws",))[:TYPES], (1, NODES))
    past = history(space)
    print(f"the next of {len(space)} candidates after {PROBES} probes; {REPEATS} repeats, one thread")
    ours = milliseconds(method(Search(OURS)), space, past)
    say(OURS, ours, ours)
    for name in TOOLS:
        try:
            strategy = replace(tool(name, 0), trials=PROBES + 1)  # so that its trials are not over yet
        except MissingExtra as missing:
            print(f"{name:16} not measured: {missing}")
            continue
        say(name, milliseconds(strategy, space, past), ours)


def say(name: str, took: list[float], ours: list[float]) -> None:
    low, high = np.percentile(took, (25, 75))
    ratio = statistics.median(took) / statistics.median(ours)
    print(
        f"{name:16} median {statistics.median(took):7.1f} ms, middle half {low:.1f} to {high:.1f}, "
        f"worst {max(took):.1f}; {ratio:.1f} x {OURS}",
        flush=True,
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
