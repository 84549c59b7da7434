"""LambdaML: one allocation for all stages, the best one.

Jiang et al., 'Towards Demystifying Serverless Machine Learning Training', SIGMOD 2021, as CE-scaling compares with it:
all trials are treated alike (section IV-B), and of the allocations on the Pareto boundary all are tried (section
III-C, 'Warm start'). Where trials wait for each other, every stage has a boundary of its own and all of them are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.knapsack import ROUNDING, Knapsack, Picks
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, StageProblem, Storages, as_plan, keeps


def lambdaml(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best static plan."""
    return static_plan("lambdaml", problem, goal)


def static_plan(method: str, problem: StageProblem, goal: Goal, storages: Storages = None) -> StagePlan | None:
    """The best plan with one allocation for all stages; None if not one of them keeps the limits."""
    plans = [_best(method, menus, goal) for menus in problem.static_menus(storages)]
    found = [plan for plan in plans if plan is not None]
    if goal.objective is Objective.CHEAPEST:
        return min(found, key=lambda plan: (plan.usd, plan.seconds), default=None)
    return min(found, key=lambda plan: (plan.seconds, plan.usd), default=None)


def static_picks(problem: StageProblem, goal: Goal, sack: Knapsack) -> Picks:
    """Where to begin from in `knapsack(problem.menus(), goal)`: what is no worse than the best static plan anywhere.

    Where stages have boundaries of their own, a point of a stage's own boundary beats what the static plan has there.
    The lightest points where no static plan keeps the limit on weight.
    """
    cheap = goal.objective is Objective.CHEAPEST
    alone = replace(goal, budget_usd=None) if cheap else replace(goal, deadline_s=None)
    plan = static_plan("static", problem, alone)
    if plan is None:
        return sack.lightest
    picks = sack.best_within([each.seconds if cheap else each.usd for each in plan.stages])
    return picks if sack.keeps(picks) else sack.lightest


def _best(method: str, menus: Sequence[Menu], goal: Goal) -> StagePlan | None:
    """The best of the points that these menus share."""
    seconds = sum((menu.seconds for menu in menus), start=np.zeros(len(menus[0])))
    usd = sum((menu.usd for menu in menus), start=np.zeros(len(menus[0])))
    kept = np.ones(len(seconds), dtype=bool)
    if goal.budget_usd is not None:
        kept &= usd <= goal.budget_usd * (1 + ROUNDING)
    if goal.deadline_s is not None:
        kept &= seconds <= goal.deadline_s * (1 + ROUNDING)
    at = np.flatnonzero(kept)
    first, then = (usd, seconds) if goal.objective is Objective.CHEAPEST else (seconds, usd)
    for point in at[np.lexsort((then[at], first[at]))].tolist():
        plan = as_plan(method, menus, [point] * len(menus))
        if keeps(plan, goal):
            return plan
    return None
