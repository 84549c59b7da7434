"""Savings of the planners against the baselines, next to CE-scaling's claims.

saving   1 - time (within a budget) or cost (within a deadline) over that of a baseline in the same case (job, limit, in
         training seed), if both have a plan and neither violated the limit. Negative: a loss.
best     the baseline that did best in that case
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mlcd_bench.functions.limits import BUDGET, DEADLINE
from mlcd_bench.functions.runs import TRAINING, TUNING, Case

OURS = ("exact", "greedy")
BASELINES = ("lambdaml", "siren", "cirrus", "fixed")
METHODS = (*OURS, *BASELINES)
BEST = "best"
CLAIMS = {(TUNING, BUDGET): 0.63, (TUNING, DEADLINE): 0.41, (TRAINING, BUDGET): 0.58, (TRAINING, DEADLINE): 0.38}
"""Wu et al. (CE-scaling, IPDPS 2023), abstract: the largest savings of time within a budget, cost within a deadline."""


@dataclass(frozen=True, slots=True)
class Savings:
    """A planner against a baseline over all cases; None if there was nothing to compare.

    `least` is the worst loss if negative. `claimed`: the largest saving that the paper reports.
    """

    phase: str
    limit_kind: str
    method: str
    against: str
    pairs: int
    median: float | None
    least: float | None
    most: float | None
    claimed: float


@dataclass(frozen=True, slots=True)
class Kept:
    """How often a method had no plan, violated a limit, and exceeded it.

    Other violations did not reach the target of the training within the limit.
    """

    phase: str
    limit_kind: str
    method: str
    runs: int
    without_plan: int
    violated: int
    over: int


def saving(case: Case, method: str, against: str) -> float | None:
    """The saving of a method in one case against another method, or against the best baseline."""
    good = {run.method: run.objective for run in case if run.objective is not None and not run.violated}
    rivals = [good[name] for name in (BASELINES if against == BEST else (against,)) if name in good]
    if method not in good or not rivals:
        return None
    return 1 - good[method] / min(rivals)


def savings(cases: Sequence[Case]) -> list[Savings]:
    """Each planner against the best baseline, and against each of them."""
    rows = []
    for (phase, kind), claimed in CLAIMS.items():
        mine = [case for case in cases if (case[0].phase, case[0].limit_kind) == (phase, kind)]
        there = {run.method for case in mine for run in case}
        for method in (name for name in OURS if name in there):
            for against in (BEST, *(name for name in BASELINES if name in there)):
                all_of = [each for case in mine if (each := saving(case, method, against)) is not None]
                middle, least, most = (median(all_of), min(all_of), max(all_of)) if all_of else (None, None, None)
                rows.append(Savings(phase, kind, method, against, len(all_of), middle, least, most, claimed))
    return rows


def kept(cases: Sequence[Case]) -> list[Kept]:
    """For each phase, kind of limit and method."""
    runs = [run for case in cases for run in case]
    keys = dict.fromkeys((run.phase, run.limit_kind, run.method) for run in runs)
    rows = []
    for key in sorted(keys, key=lambda key: list(CLAIMS).index(key[:2])):
        made = [run for run in runs if (run.phase, run.limit_kind, run.method) == key]
        without_plan, violated = sum(run.hours is None for run in made), sum(run.violated for run in made)
        rows.append(Kept(*key, len(made), without_plan, violated, sum(run.over for run in made)))
    return rows
