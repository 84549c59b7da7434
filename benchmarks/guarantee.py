"""All promises of a search, checked on many random small clouds with arbitrary speeds, noise and failures.

The test suite checks a few hundred such clouds; this checks as many as you like.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import sklearn

from mlcd.core.job import Search
from mlcd.core.version import VERSION
from mlcd.planners.train.planner import METHODS
from mlcd.planners.train.planner import method as make
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording
from mlcd.testing.promises import check_promises, search_and_run

NOISES = (0.0, 0.01, 0.03, 0.08)


def one(task: tuple[str, int]) -> tuple[str, str]:
    """Search on the cloud of a seed; returns how it ended, and the broken promise, if any."""
    method, seed = task
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job = job_on(recording, random_goal(rng, recording))
    strategy = make(Search(method, seed=seed))
    ledger, run, decision = search_and_run(strategy, job, bounded_cloud(recording, NOISES[seed % len(NOISES)], seed))
    try:
        check_promises(strategy, job, ledger.lines(run))
    except AssertionError as broken:
        return "broken", f"seed {seed}: {broken}"
    finally:
        ledger.close()
    if not job.goal.limited:
        return "no limit", ""
    return ("certified" if decision.certified else "not certified"), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clouds", type=int, default=20_000)
    parser.add_argument("--method", default="net-value", choices=sorted(METHODS))
    chosen = parser.parse_args()
    started = time.perf_counter()
    ends: Counter[str] = Counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for end, detail in pool.map(one, ((chosen.method, seed) for seed in range(chosen.clouds)), chunksize=50):
            ends[end] += 1
            if detail:
                print(detail)
    print(f"{chosen.method} on {chosen.clouds} random clouds, seeds 0..{chosen.clouds - 1}, noise {NOISES}")
    print(", ".join(f"{count} {end}" for end, count in ends.most_common()))
    print(f"promises broken: {ends['broken']}; {time.perf_counter() - started:.0f} s on {os.cpu_count()} cores")
    print(f"mlcd {VERSION}, numpy {np.__version__}, scikit-learn {sklearn.__version__}, {platform.python_version()}")
    raise SystemExit(1 if ends["broken"] else 0)


if __name__ == "__main__":
    main()
