"""Tuning: each method's plan for all stages of a search by successive halving, by the model.

planning_ms   the Pareto boundary over all storages, computed once for a job but counted in full for each run,
              and the plan
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TypeVar

from mlcd.core.job import Goal
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.nouns import Tuning
from mlcd.planners.functions.problem import StageProblem
from mlcd_bench.functions.jobs import BenchJob
from mlcd_bench.functions.limits import Limit, limits
from mlcd_bench.functions.runs import TUNING, Run

T = TypeVar("T")

ETA, EPOCHS_PER_STAGE = 2, 2
"""CE-scaling, section IV-B."""


def tune(job: BenchJob, methods: Sequence[str], trials: int, factors: Sequence[float]) -> list[Run]:
    """Every method and limit."""
    problem = StageProblem(job.model, job.serverless, Tuning(trials, ETA, EPOCHS_PER_STAGE).stages)
    _, boundary_ms = _timed(lambda: problem.menus)
    for method in methods:
        METHODS[method].plan_stages(problem, Goal())  # a method with a fixed storage has its own boundary, computed now
    pairs = product(methods, limits(problem, factors))
    return [_run(job, problem, method, limit, boundary_ms) for method, limit in pairs]


def _run(job: BenchJob, problem: StageProblem, method: str, limit: Limit, boundary_ms: float) -> Run:
    plan, plan_ms = _timed(partial(METHODS[method].plan_stages, problem, limit.goal))
    planning_ms = boundary_ms + plan_ms
    if plan is None:
        return Run.of(job.name, TUNING, limit, method, planning_ms=planning_ms)
    hours, usd = plan.seconds / 3_600, plan.usd
    broken = limit.broken(hours, usd)
    return Run.of(job.name, TUNING, limit, method, hours=hours, usd=usd, violated=broken, planning_ms=planning_ms)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the milliseconds that it took."""
    before_s = time.perf_counter()
    found = work()
    return found, 1_000 * (time.perf_counter() - before_s)
