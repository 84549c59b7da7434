"""The stage plan as a multiple-choice knapsack: one point for each stage, the least value within a limit on weight.

Both problems of CE-scaling (section III-C) are this one. Within a budget the value is time and the weight is money;
within a deadline it is the other way round. A limit on the value as well is only looked at in the end: if the least
value breaks it, every plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.beliefs.epoch import Ints
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, as_plan, keeps

Picks = tuple[int, ...]
"""One point of each stage."""
ROUNDING = 1e-12
"""Relative: sums of the same numbers in another order differ by less, and plans that differ by less are equal."""


@dataclass(frozen=True, eq=False)
class Knapsack:
    """For each stage, points with rising value and falling weight; the sum of weights is limited."""

    values: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    limit: float = inf

    @property
    def points(self) -> int:
        """Of all stages together."""
        return sum(len(values) for values in self.values)

    @property
    def best(self) -> Picks:
        """The least value of every stage, whatever it weighs."""
        return (0,) * len(self.values)

    @property
    def lightest(self) -> Picks:
        """The least weight of every stage."""
        return tuple(len(weights) - 1 for weights in self.weights)

    @property
    def feasible(self) -> bool:
        """Whether there is a plan within the limit."""
        return all(len(values) for values in self.values) and self.keeps(self.lightest)

    def value(self, picks: Sequence[int]) -> float:
        """Summed in the order of the stages, as `Plan` does: the same to the last bit."""
        return sum(float(values[pick]) for values, pick in zip(self.values, picks, strict=True))

    def weight(self, picks: Sequence[int]) -> float:
        """Likewise."""
        return sum(float(weights[pick]) for weights, pick in zip(self.weights, picks, strict=True))

    def keeps(self, picks: Sequence[int]) -> bool:
        """Whether it is within the limit."""
        return self.weight(picks) <= self.limit

    def only(self, kept: Sequence[Ints]) -> Knapsack:
        """The same with these points alone."""
        values = tuple(each[at] for each, at in zip(self.values, kept, strict=True))
        return Knapsack(values, tuple(each[at] for each, at in zip(self.weights, kept, strict=True)), self.limit)

    def best_within(self, shares: Sequence[float]) -> Picks:
        """The least value in each stage that weighs no more than its share; the lightest where nothing does."""
        found = (
            min(int(np.searchsorted(-weights, -share)), len(weights) - 1)
            for weights, share in zip(self.weights, shares, strict=True)
        )
        return tuple(found)


def knapsack(menus: Sequence[Menu], goal: Goal) -> Knapsack:
    """The problem that a goal makes of these menus."""
    seconds, usd = tuple(menu.seconds for menu in menus), tuple(menu.usd for menu in menus)
    if goal.objective is not Objective.CHEAPEST:
        return Knapsack(seconds, usd, inf if goal.budget_usd is None else goal.budget_usd)
    turned = tuple(each[::-1] for each in usd), tuple(each[::-1] for each in seconds)
    return Knapsack(*turned, inf if goal.deadline_s is None else goal.deadline_s)


def plan_of(method: str, menus: Sequence[Menu], goal: Goal, picks: Picks | None) -> StagePlan | None:
    """The plan that a solution of `knapsack(menus, goal)` stands for; None if there is none within both limits."""
    if picks is None:
        return None
    if goal.objective is Objective.CHEAPEST:
        picks = tuple(len(menu) - 1 - pick for menu, pick in zip(menus, picks, strict=True))
    plan = as_plan(method, menus, picks)
    return plan if keeps(plan, goal) else None
