"""Stage plans for 16,384 trials over the whole space: the time to plan, and the loss of greedy and static plans.

python benchmarks/stage_plans.py [--milp-s 30] [--whole] [--only bert]

AWS by published constants and list prices: modelled, not measured. The oracle is `scipy.optimize.milp`. With `--whole`
it gets every point of the boundary; without, only those whose reduced cost does not rule them out of any plan better
than the exact one. It may break a limit by its tolerance, so the excess of its plan is shown, and its bound counts:
`proven` is how far above the optimum the exact plan can be, by the oracle's bound in its time.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import scipy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from mlcd.core.job import Goal, Objective
from mlcd.core.version import VERSION
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.exact import exact as exact_plan
from mlcd.planners.functions.knapsack import Knapsack, knapsack, relax
from mlcd.planners.functions.nouns import StagePlan, Tuning
from mlcd.planners.functions.problem import StageProblem, cheapest, fastest
from mlcd_bench.functions.jobs import JOBS, BenchJob

T = TypeVar("T")

TRIALS, REPEATS = 16_384, 5
FACTORS = (1.05, 1.2, 1.5, 2.0, 5.0)
"""Limits over the cheapest plan's dollars, or the fastest plan's seconds."""
MANY = 10_000
"""With more points the oracle's presolve takes longer than all else."""
SCALE = 1e3
"""Rows are scaled by this: the oracle's tolerance is absolute."""


@dataclass(frozen=True)
class Oracle:
    """milp's result: value, relative excess over the limit, proven bound, and time."""

    value: float
    over: float
    bound: float
    seconds: float


def timed(work: Callable[[], T], repeats: int = REPEATS) -> tuple[T, float]:
    """The result of a call, and the median of its CPU seconds."""
    took = []
    for _ in range(repeats):
        started = time.process_time()
        result = work()
        took.append(time.process_time() - started)
    return result, float(np.median(took))


def ask_milp(sack: Knapsack, limit_s: float, presolve: bool) -> Oracle:
    values, weights = np.concatenate(sack.values), np.concatenate(sack.weights)
    stage = np.repeat(np.arange(len(sack.values)), [len(each) for each in sack.values])
    one_each = csr_array((np.ones(len(stage)), (stage, np.arange(len(stage)))))
    within = LinearConstraint(csr_array(SCALE * weights[None, :] / sack.limit), ub=SCALE)
    unit = sum(float(each[0]) for each in sack.values) / SCALE
    started = time.perf_counter()
    found = milp(
        values / unit,
        constraints=[LinearConstraint(one_each, 1, 1), within],
        integrality=np.ones(len(values)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0, "time_limit": limit_s, "presolve": presolve},
    )
    took = time.perf_counter() - started
    bound = -np.inf if found.mip_dual_bound is None else unit * found.mip_dual_bound
    if found.x is None:
        return Oracle(np.nan, np.nan, bound, took)
    picked = found.x > 0.5
    return Oracle(float(values[picked].sum()), float(weights[picked].sum()) / sack.limit - 1, bound, took)


def not_ruled_out(sack: Knapsack, best: float) -> Knapsack:
    """The points that may be in a plan of this value or better, by their reduced costs."""
    relaxed = relax(sack)
    most = best - relaxed.bound + 1e-9 * best
    return sack.only([np.flatnonzero(reduced <= most) for reduced in relaxed.reduced])


def rows(job: BenchJob, milp_s: float, whole: bool) -> None:
    problem, boundary_s = timed(partial(_prepared, job), 3)
    points = len(problem.menus[0])
    ends = cheapest(problem).usd, fastest(problem).seconds
    for objective in (Objective.FASTEST, Objective.CHEAPEST):
        for factor in FACTORS:
            if objective is Objective.FASTEST:
                kind, goal = "budget", Goal(objective, budget_usd=factor * ends[0])
            else:
                kind, goal = "deadline", Goal(objective, deadline_s=factor * ends[1])
            exact, exact_s = timed(partial(exact_plan, problem, goal))
            best = _value(exact, goal)
            sack = knapsack(problem.menus, goal)
            asked = sack if whole else not_ruled_out(sack, best)
            oracle = ask_milp(asked, milp_s, presolve=asked.points < MANY) if milp_s else None
            gaps = [_gap(METHODS[name].plan_stages(problem, goal), goal, best) for name in ("greedy", "lambdaml")]
            print(
                f"| {job.name} | {points:,} | {kind} x {factor:g} | {1e3 * boundary_s:.0f} | {1e3 * exact_s:.0f} "
                f"| {asked.points:,} | {_told(oracle, best)} | {' | '.join(gaps)} |",
                flush=True,
            )


def _prepared(job: BenchJob) -> StageProblem:
    problem = StageProblem(job.model, job.serverless, Tuning(TRIALS).stages)
    assert problem.menus, "made here, so that it is timed"
    return problem


def _value(plan: StagePlan | None, goal: Goal) -> float:
    assert plan is not None, "the limit is above the end of what is possible"
    return plan.usd if goal.objective is Objective.CHEAPEST else plan.seconds


def _gap(plan: StagePlan | None, goal: Goal, best: float) -> str:
    return "none" if plan is None else f"{_value(plan, goal) / best - 1:.2%}"


def _told(oracle: Oracle | None, best: float) -> str:
    if oracle is None:
        return "- | - | - | -"
    proven = f"{max(0.0, 1 - oracle.bound / best):.1e}" if np.isfinite(oracle.bound) else "nothing"
    found = "none | none" if np.isnan(oracle.value) else f"{oracle.value / best - 1:+.1e} | {oracle.over:+.1e}"
    return f"{1e3 * oracle.seconds:.0f} | {found} | {proven}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milp-s", type=float, default=30.0, help="seconds for the oracle on each problem; 0: skip it")
    parser.add_argument("--whole", action="store_true", help="all points of the boundary for the oracle; takes minutes")
    parser.add_argument("--only", default="", help="jobs whose name has this word")
    chosen = parser.parse_args()
    stages = Tuning(TRIALS).stages
    print(
        f"mlcd {VERSION}, numpy {np.__version__}, scipy {scipy.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores; {TRIALS} trials, {len(stages)} stages, {stages[0].epochs} epochs a stage; no seeds; "
        f"AWS modelled; median of {REPEATS}, CPU time; milp: wall time, at most {chosen.milp_s:g} s"
    )
    print(
        "| job | points | limit | boundary ms | exact ms | points for milp | milp ms | milp over exact "
        "| its plan over the limit | proven | greedy over exact | static over exact |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for name, job in JOBS.items():
        if chosen.only in name:
            rows(job, chosen.milp_s, chosen.whole)


if __name__ == "__main__":
    main()
