"""The time to choose the next probe among 3,100 candidates after 20 probes, of `mlcd --help`, and the memory."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import sklearn

from mlcd.catalog import load_offers
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish
from mlcd.core.version import VERSION
from mlcd.planners.train.planner import method
from mlcd.planners.train.space import grid

TYPES, NODES, PROBES, REPEATS = 62, 50, 20, 21
TARGETS = (("heterbo", 3_100, 100), ("net-value", 100, 10), ("net-value", 3_100, 40), ("net-value", 100_000, 200))
JOB = Job("speed", 1e9, Goal(Objective.FASTEST, budget_usd=5_000.0), hints=Hints(25e6, 12e9, 1024))


def history(space: Space) -> History:
    """Twenty probes spread over the space, more than the search's first points."""
    cloud = Simulated(VirtualClock())
    picks = np.random.default_rng(0).choice(len(space), PROBES, replace=False)
    measurements = []
    for i in picks:
        configuration = space.configurations[i]
        rate = cloud.true_samples_per_s(JOB, configuration)
        seconds, usd = space.worst_probe(configuration)
        measurements.append(Measurement(configuration, Outcome.OK, seconds, usd, rate, 0.01, 90.0))
    return History(
        tuple(measurements), spent_usd=sum(m.usd for m in measurements), elapsed_s=sum(m.seconds for m in measurements)
    )


def milliseconds(name: str, space: Space, past: History) -> list[float]:
    """Milliseconds of each of many equal choices."""
    strategy, took = method(Search(name)), []
    for _ in range(REPEATS):
        started = time.perf_counter()
        step = strategy.next_step(JOB, space, past)
        took.append(1_000 * (time.perf_counter() - started))
    assert name != "heterbo" or not isinstance(step, Finish), "it did not ask its model"
    return took


def _around(past: History, size: int) -> Space:
    """A space of about this size that contains all measured configurations."""
    nodes: dict[Offer, set[int]] = {}
    for m in past.measurements:
        nodes.setdefault(m.configuration.offer, set()).add(m.configuration.nodes)
    few = set(range(1, size // len(nodes)))
    return Space(tuple(Choice(offer, tuple(sorted(counts | few))) for offer, counts in nodes.items()))


def main() -> None:
    print(
        f"mlcd {VERSION}, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    offers = load_offers(("aws",))[:TYPES]
    past = history(grid(offers, (1, NODES)))
    # HeterBO asks its model only once every type has a rate, so the types that were probed fill the space.
    probed = tuple(offer for offer in offers if offer in {m.configuration.offer for m in past.measurements})
    for name, candidates, target in TARGETS:
        space = grid(probed, (1, max(NODES, candidates // len(probed) + 1)))
        if candidates < len(space):  # a small space holds little more than what was measured
            space = _around(past, candidates)
        took = milliseconds(name, space, past)
        print(
            f"{name}: the next of {len(space)} candidates after {PROBES} probes: "
            f"median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms (target {target} ms)"
        )
    took = []
    for _ in range(11):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mlcd", "--help"], check=True, capture_output=True)
        took.append(time.perf_counter() - started)
    print(f"mlcd --help: median {statistics.median(took):.3f} s, best {min(took):.3f} s (target 0.3 s)")
    print(
        f"this process at its largest: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB "
        "(target 400 MB)"
    )


if __name__ == "__main__":
    main()
