"""Counts missed deadlines and exceeded budgets on hostile markets:

python benchmarks/spot_adversarial.py [--traces 100000]

Each seed makes a job and a market (tests/mlcd_fixtures/hostile_markets.py). The job runs under the guard with our
policy or another one, half of which act at random. On-demand machines are always available.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from mlcd_fixtures.hostile_markets import MOODS, Hostile, RandomPolicy, hostile_terms

from mlcd.planners.train.market import CostToGo, Greedy, Guarded, Policy, UniformProgress
from mlcd_bench.spot import play


def policy_of(seed: int, ours: int) -> Policy:
    """Our policy for every `ours`-th seed; the random policy for half of the others."""
    if seed % ours == 0:
        return CostToGo()
    others: tuple[Policy, ...] = (RandomPolicy(seed), RandomPolicy(seed), Greedy(), UniformProgress())
    return others[seed % 4]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--ours", type=int, default=2, help="our policy plays every so many traces")
    asked = parser.parse_args()
    began, counts, missed, exceeded = time.process_time(), Counter[str](), [], []
    for seed in range(asked.first, asked.first + asked.traces):
        terms, policy = hostile_terms(seed), policy_of(seed, asked.ours)
        mood = MOODS[seed // 7 % len(MOODS)]
        played = play(Guarded(policy), Hostile(mood, seed, terms), terms)
        counts[f"{policy.name}, {mood}"] += 1
        if not played.met:
            missed.append(seed)
        if terms.budget_usd is not None and played.cost_usd > terms.budget_usd * (1 + 1e-9):
            exceeded.append(seed)
    for name, count in sorted(counts.items()):
        print(f"{count:7} {name}")
    print(f"{asked.traces} traces from seed {asked.first}; {time.process_time() - began:.0f} s of CPU")
    print(f"missed deadlines: {len(missed)} {missed[:10]}; budgets exceeded: {len(exceeded)} {exceeded[:10]}")
    raise SystemExit(bool(missed or exceeded))


if __name__ == "__main__":
    main()
