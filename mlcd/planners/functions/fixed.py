"""Fixed: an equal share of the limit for each stage.

CE-scaling, section IV-B: 'divides resources equally among stages and across trials in each stage'. The first stage of
16,384 trials has as much as the last one of two: the first starves and the last cannot use what it has.
"""

from __future__ import annotations

from mlcd.core.job import Goal
from mlcd.planners.functions.knapsack import ROUNDING, knapsack, plan_of
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import StageProblem


def fixed(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best allocation within each stage's share; None if a stage has nothing that keeps it."""
    menus = problem.menus()
    sack = knapsack(menus, goal)
    share = sack.limit / len(menus)
    if not sack.feasible or any(weights[-1] > share for weights in sack.weights):
        return None
    picks = sack.best_within([share] * len(menus))
    if not sack.keeps(picks):  # equal shares add up to more than the whole, by a rounding error
        picks = sack.best_within([share * (1 - ROUNDING)] * len(menus))
    return plan_of("fixed", menus, goal, picks)
