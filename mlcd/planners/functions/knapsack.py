"""The stage plan as a multiple-choice knapsack: one point for each stage, the least value within a limit on weight.

Both problems of CE-scaling (section III-C) are this one. Within a budget the value is time and the weight is money;
within a deadline it is the other way round. A limit on the value as well is only looked at in the end: if the least
value breaks it, every plan does.

The relaxed problem, where a stage may be split between two points, is what no plan can be better than (a Lagrangian
relaxation). It has one price lambda for weight: every stage takes the point where value + lambda weight is least, a
corner of the lower convex hull of its points, and one stage lies between two corners.

    bound                 sum_i min_j ( v_ij + lambda w_ij ) - lambda limit
    reduced cost of ij    v_ij + lambda w_ij less the least of stage i: what the bound rises by if j is taken
    rest(w)               the least value of some stages with weight w left for them: the segments of their hulls,
                          the steepest first; piecewise linear
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
from mlcd.planners.functions.problem import Menu, as_plan

Picks = tuple[int, ...]
"""One point of each stage."""
ROUNDING = 1e-12
"""Relative: sums of the same numbers in another order differ by less, and plans that differ by less are equal."""
STRAIGHT = 1e-14
"""Relative: a plan that is nearer to the line through two others lies on it."""


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
        pairs = zip(self.weights, shares, strict=True)
        return tuple(min(int(np.searchsorted(-weights, -share)), len(weights) - 1) for weights, share in pairs)


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
    return plan if goal.allows(plan.usd, plan.seconds) else None


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The relaxed problem solved. `over` and `under` the limit: the plans it lies between; equal if nothing is split.

    `reduced`: of every point of every stage.
    """

    bound: float
    over: Picks
    under: Picks
    reduced: tuple[Floats, ...]


def relax(problem: Knapsack) -> Relaxed:
    """Solve it: the line through a plan over the limit and one under it says at what price to look in between."""
    over, under, price = problem.best, problem.lightest, 0.0
    if problem.keeps(over):
        return _at_price(problem, 0.0, over, over)
    while True:
        more = problem.weight(over) - problem.weight(under)
        price = (problem.value(under) - problem.value(over)) / more
        between = tuple(int((v + price * w).argmin()) for v, w in zip(problem.values, problem.weights, strict=True))
        line = problem.value(over) + price * problem.weight(over)
        if problem.value(between) + price * problem.weight(between) >= line * (1 - STRAIGHT):
            return _at_price(problem, price, over, under)
        if problem.keeps(between):
            under = between
        else:
            over = between


def _at_price(problem: Knapsack, price: float, over: Picks, under: Picks) -> Relaxed:
    paid = [v + price * w for v, w in zip(problem.values, problem.weights, strict=True)]
    least = [float(each.min()) for each in paid]
    spent = price * problem.limit if price else 0.0
    # a bound that is too high by a rounding error would be none
    bound = sum(least) - spent - ROUNDING * (sum(least) + spent) / 100
    return Relaxed(bound, over, under, tuple(each - low for each, low in zip(paid, least, strict=True)))


@dataclass(frozen=True, eq=False)
class Rest:
    """rest(w): the least value of some stages, relaxed, for the weight that is left for them."""

    weights: Floats
    values: Floats

    @classmethod
    def of(cls, hulls: Sequence[tuple[Floats, Floats]]) -> Rest:
        """Of stages together: for each the values and weights of the corners of its lower convex hull.

        From the lightest points of all, each step to more weight and less value, the steepest first.
        """
        nothing = np.empty(0)
        less = np.concatenate([nothing, *(np.diff(values) for values, _ in hulls)])
        more = np.concatenate([nothing, *(-np.diff(weights) for _, weights in hulls)])
        steepest = np.argsort(-less / more)
        return cls(
            np.cumsum(np.append(sum(float(weights[-1]) for _, weights in hulls), more[steepest])),
            np.cumsum(np.append(sum(float(values[-1]) for values, _ in hulls), -less[steepest])),
        )

    def least_value(self, left: Floats) -> Floats:
        """No plan for these stages is below this with so much weight left; infinite where not even the lightest is."""
        found: Floats = np.interp(left, self.weights, self.values)
        found[left < self.weights[0]] = np.inf
        return found
