"""Plans that ignore stages: one allocation for all of them, or an equal share of the limit for each.

LambdaML   Jiang et al., 'Towards Demystifying Serverless Machine Learning Training', SIGMOD 2021, as CE-scaling
           describes it: all trials are treated alike (section IV-B), and of the allocations on the Pareto boundary
           all are tried (section III-C, 'Warm start'). Where trials wait for each other, every stage has a boundary of
           its own and all of them are tried.
Cirrus     Carreira et al., 'Cirrus: a Serverless Framework for End-to-end ML Workflows', SoCC 2019, as CE-scaling
           compares with it: a parameter server on a virtual machine always (section II-C3), nothing planned by stages.
Fixed      CE-scaling, section IV-B: 'divides resources equally among stages and across trials in each stage'. The first
           stage of 16,384 trials gets as much as the last one of two: too little for the first, too much for the last.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from mlcd.core.job import Goal
from mlcd.planners.functions.exact import static_plan
from mlcd.planners.functions.knapsack import ROUNDING, knapsack, plan_of
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.workload import StorageKind


def lambdaml(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best static plan."""
    return static_plan("lambdaml", problem, goal)


def cirrus(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best static plan with a parameter server; None if none keeps the limits."""
    return static_plan("cirrus", limited_to(problem, StorageKind.VM_PS), goal)


@lru_cache(maxsize=8)  # a boundary takes a tenth of a second, and every limit needs it
def limited_to(problem: StageProblem, storage: StorageKind) -> StageProblem:
    """The same problem with only this storage."""
    return replace(problem, limits=problem.limits.with_storages(storage))


def fixed(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best allocation within each stage's share; None if a stage has none."""
    menus = problem.menus
    sack = knapsack(menus, goal)
    share = sack.limit / len(menus)
    if not sack.feasible or any(weights[-1] > share for weights in sack.weights):
        return None
    picks = sack.best_within([share] * len(menus))
    if not sack.keeps(picks):  # equal shares add up to more than the whole, by a rounding error
        picks = sack.best_within([share * (1 - ROUNDING)] * len(menus))
    return plan_of("fixed", menus, goal, picks)
