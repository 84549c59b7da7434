"""Siren: functions that exchange gradients through S3, with more resources for early stages.

Wang et al., 'Distributed Machine Learning with a Serverless Architecture', INFOCOM 2019. Its policy is a trained
network that was not published. CE-scaling's description is reproduced instead: it uses S3 (section II-C3), plans
no stages (section IV-B), and 'tends to allocate more resources in the early stages'. As a rule, for d stages:

    share_i = floor_i + (limit - sum floor) floor_i e_i / sum floor e      floor_i: the least that stage i needs
    e_i     = from EARLY for the first stage down to 1 for the last, evenly: within a budget, dollars
              from 1 up to EARLY, evenly: within a deadline, seconds       (more resources early is less time early)

and each stage takes the best allocation within its share. With EARLY = 1 every stage would have the same allocation:
LambdaML on S3.
"""

from __future__ import annotations

from math import inf

import numpy as np

from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.knapsack import ROUNDING, Knapsack, Picks, knapsack, plan_of
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.workload import StorageKind
from mlcd_bench.baselines.functions.static import limited_to

EARLY = 2.0
"""Resources of a first-stage trial beyond its minimum, relative to a last-stage trial. Our choice."""


def siren(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best plan within shares that are larger early; None if no allocation on S3 keeps the limits."""
    menus = limited_to(problem, StorageKind.S3).menus
    early, late = (1.0, EARLY) if goal.objective is Objective.CHEAPEST else (EARLY, 1.0)
    return plan_of("siren", menus, goal, _shared(knapsack(menus, goal), early, late))


def _shared(sack: Knapsack, first: float, last: float) -> Picks | None:
    if not sack.feasible:
        return None
    if sack.limit == inf:
        return sack.best
    floors = np.array([weights[-1] for weights in sack.weights])
    eager = floors * np.linspace(first, last, len(floors))
    # reduced by more than the rounding error of sums
    slack = max(0.0, sack.limit * (1 - ROUNDING) - sack.weight(sack.lightest))
    return sack.best_within((floors + slack * eager / eager.sum()).tolist())
