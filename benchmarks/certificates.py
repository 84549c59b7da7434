"""How often does a certificate break where noise has tails, as in life?

The same random clouds as `guarantee.py`, but the noise of a probe is not cut off at the stated level, and
the method is not told that level: it estimates the noise from the samples. A certificate counts on
three standard errors, so about one rate in 740 is below its slow end; a certificate breaks only if the
limit is that near as well.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import stats

from mlcd.assemble import METHODS, Cloud
from mlcd.assemble import method as make
from mlcd.backends import Recorded
from mlcd.clock import VirtualClock
from mlcd.job import Search
from mlcd.profilers import TrainingProfiler
from mlcd.testing.clouds import job_on, random_goal, random_recording
from mlcd.testing.promises import check_books, search_and_run
from mlcd.version import VERSION

NOISES = (0.01, 0.03, 0.08)


def one(task: tuple[str, int]) -> tuple[float, str]:
    """The noise of a seed's cloud, and how its search ended."""
    method, seed = task
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job = job_on(recording, random_goal(rng, recording))
    noise, clock = NOISES[seed % len(NOISES)], VirtualClock()
    backend = Recorded(recording, clock, noise, seed)
    profiler = TrainingProfiler(backend, noise_floor=0.0, tight=None, warm_up=False)
    cloud = Cloud(recording.space, backend, profiler, clock)
    ledger, run, decision = search_and_run(make(Search(method, seed=seed)), job, cloud)
    check_books(job.goal, ledger.lines(run))  # the hard stop holds whatever the noise
    ended = ledger.account(run).ended
    ledger.close()
    if not job.goal.limited or not decision.certified:
        return noise, "no certificate"
    return noise, "kept" if ended is not None and ended.finished else "broken"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clouds", type=int, default=20_000)
    parser.add_argument("--method", default="net-value", choices=sorted(METHODS))
    chosen = parser.parse_args()
    ends: Counter[tuple[float, str]] = Counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tasks = ((chosen.method, seed) for seed in range(chosen.clouds))
        ends.update(pool.map(one, tasks, chunksize=50))
    print(f"{chosen.method}, {chosen.clouds} clouds, seeds 0..{chosen.clouds - 1}, mlcd {VERSION}")
    for noise in NOISES:
        kept, broken = ends[noise, "kept"], ends[noise, "broken"]
        interval = stats.binomtest(broken, kept + broken).proportion_ci()
        print(
            f"noise {noise:.0%}: {kept + broken} certificates, {broken} broken: "
            f"{broken / (kept + broken):.3%} (95 % interval {interval.low:.3%} to {interval.high:.3%})"
        )
    print("a broken certificate is a job stopped at its limit before it was done; no limit was passed")


if __name__ == "__main__":
    main()
