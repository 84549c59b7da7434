"""One run of one method on one problem: its probes, its choice after each, and its forecasts.

chosen   after 0 probes: the plan that the method would choose without a probe, if it can; after more: the best probed
         plan that ran, since only measured plans can be certified. None if there is no such plan
ratio    cost of the chosen plan over that of the best; None for a miss: nothing is chosen, or the plan chosen without
         a probe runs out of memory
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlcd.planners.train.plans.belief import PlanBelief
from mlcd.planners.train.plans.plan_choice import best_plan, next_plan
from mlcd_bench.baselines.plans.gp_ei import gp_ei
from mlcd_bench.baselines.plans.orders import practice, random_order
from mlcd_bench.baselines.plans.popular import popular
from mlcd_bench.baselines.plans.textbook import textbook
from mlcd_bench.plans.folder import Outcome
from mlcd_bench.plans.grey_box import believed
from mlcd_bench.plans.problem import PlanProblem, Shown

SHOWN_AFTER = (0, 1, 3, 6)
"""Numbers of probes after which the choice is recorded."""
FORECASTS = (0, 3)
"""Numbers of probes after which the forecasts are recorded."""
OURS = "grey-box"
Order = Callable[[PlanProblem, np.random.Generator], Sequence[int]]
ORDERS: Mapping[str, Order] = {"random": random_order, "practice": practice, "textbook": textbook, "popular": popular}
"""Methods that rank all plans before any probe."""
METHODS = (OURS, *ORDERS, "gp-ei")
BLIND = ("random", "gp-ei")
"""Methods that choose nothing before the first probe."""


@dataclass(frozen=True)
class PlanRun:
    """One run, as `mlcd bench plans -o json` prints it."""

    file: str
    problem: dict[str, Any]
    goal: str
    method: str
    seed: int
    probes: list[dict[str, Any]]
    chosen: list[int | None]
    ratio: list[float | None]
    optimum: int
    plans: int
    predicted: list[dict[str, Any]]


def play_plans(problem: PlanProblem, method: str, seed: int, probes: int) -> PlanRun:
    """Probe up to so many plans, one after the other."""
    tried, unseen = _tried(problem, method, seed, probes)
    choices = [unseen if n == 0 else Shown.of(problem, tried[:n]).best for n in SHOWN_AFTER]
    first = problem.rows[0]
    return PlanRun(
        first.file,
        {"model": first.model, "seq": first.spec.sequence, "adapter": str(first.spec.plan.adapter)},
        str(problem.goal),
        method,
        seed,
        [{"row": problem.rows[i].row, "outcome": str(problem.rows[i].outcome)} for i in tried],
        [None if i is None else problem.rows[i].row for i in choices],
        [_ratio(problem, i) for i in choices],
        problem.rows[problem.optimum].row,
        len(problem.rows),
        _predicted(problem, tried, seed) if method == OURS else [],
    )


def _tried(problem: PlanProblem, method: str, seed: int, probes: int) -> tuple[list[int], int | None]:
    """The probed plans, in order, and the choice before the first probe."""
    if method in ORDERS:
        order = ORDERS[method](problem, np.random.default_rng(seed))
        return list(order[:probes]), None if method in BLIND else next(iter(order), None)
    tried: list[int] = []
    unseen = None if method in BLIND else _unseen(problem, seed)
    while len(tried) < probes:
        pick = _next(problem, method, seed, Shown.of(problem, tried))
        if pick is None:
            break
        tried.append(pick)
    return tried, unseen


def _next(problem: PlanProblem, method: str, seed: int, shown: Shown) -> int | None:
    if method == OURS:
        return next_plan(believed(problem, shown.tried, seed), problem.factor, shown.cost, shown.failed)
    return gp_ei(problem, shown, np.random.default_rng([seed, len(shown.tried)]))


def _unseen(problem: PlanProblem, seed: int) -> int | None:
    return best_plan(believed(problem, (), seed), problem.factor, Shown.of(problem, ()).cost)


def _ratio(problem: PlanProblem, chosen: int | None) -> float | None:
    if chosen is None or problem.rows[chosen].outcome is Outcome.OUT_OF_MEMORY:
        return None
    return float(np.exp(problem.cost[chosen] - problem.cost[problem.optimum]))


def _predicted(problem: PlanProblem, tried: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """For every row the forecast before any probe, and `after_3` the one after three."""
    before, after = (_forecast(believed(problem, tried[:n], seed)) for n in FORECASTS)
    rows = zip(problem.rows, before, after, strict=True)
    return [{"row": row.row, **early, f"after_{FORECASTS[1]}": late} for row, early, late in rows]


def _forecast(belief: PlanBelief) -> list[dict[str, float]]:
    table = np.column_stack([*belief.interval(0.9), belief.chance])
    return [
        dict(zip(("p05_s", "p50_s", "p95_s", "fits"), (float(f"{x:.6g}") for x in row), strict=True)) for row in table
    ]
