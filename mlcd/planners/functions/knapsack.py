"""The stage plan as a multiple-choice knapsack: one point for each stage, the least value within a limit on weight.

Both problems of CE-scaling (section III-C) have this form. Within a budget the value is time and the weight is money;
within a deadline it is the other way round. If the value has a limit, too, it is checked at the end: if the least value
exceeds it, every plan does.

The relaxed problem, where a stage may be split between two points, gives a lower bound on all plans (a Lagrangian
relaxation). It has one price lambda for weight: every stage takes the point where value + lambda weight is least, a
corner of the lower convex hull of its points, and one stage lies between two corners.

    bound                 sum_i min_j ( v_ij + lambda w_ij ) - lambda limit
    reduced cost of ij    v_ij + lambda w_ij minus the least of stage i: how much the bound rises if j is taken
    remainder(w)          the least value of some stages with weight w left for them: the segments of their hulls,
                          the steepest first; piecewise linear
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.epoch_model.epoch import Ints
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, as_plan

Picks = tuple[int, ...]
"""One point of each stage."""
ROUNDING = 1e-12
"""Relative: sums in another order differ by less, and plans that differ by less count as equal."""
STRAIGHT = 1e-14
"""Relative: a plan nearer than this to the line through two others counts as on the line."""


@dataclass(frozen=True, eq=False)
class Knapsack:
    """For each stage, points with rising value and falling weight; the sum of weights is limited."""

    values: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    limit: float = inf

    @property
    def points(self) -> int:
        """The number of points of all stages."""
        return sum(len(values) for values in self.values)

    @property
    def best(self) -> Picks:
        """The point of least value in every stage, whatever its weight."""
        return (0,) * len(self.values)

    @property
    def lightest(self) -> Picks:
        """The point of least weight in every stage."""
        return tuple(len(weights) - 1 for weights in self.weights)

    @property
    def feasible(self) -> bool:
        """Whether there is a plan within the limit."""
        return all(len(values) for values in self.values) and self.keeps(self.lightest)

    def value(self, picks: Sequence[int]) -> float:
        """The sum of values, in the order of the stages as in `StagePlan`, so that both are equal to the last bit."""
        return sum(float(values[pick]) for values, pick in zip(self.values, picks, strict=True))

    def weight(self, picks: Sequence[int]) -> float:
        """The sum of weights, in the same order."""
        return sum(float(weights[pick]) for weights, pick in zip(self.weights, picks, strict=True))

    def keeps(self, picks: Sequence[int]) -> bool:
        """Whether these points are within the limit."""
        return self.weight(picks) <= self.limit

    def only(self, kept: Sequence[Ints]) -> Knapsack:
        """The same problem with these points only."""
        values = tuple(each[at] for each, at in zip(self.values, kept, strict=True))
        return Knapsack(values, tuple(each[at] for each, at in zip(self.weights, kept, strict=True)), self.limit)

    def best_within(self, shares: Sequence[float]) -> Picks:
        """In each stage the point of least value within its share of the weight; the lightest if none is."""
        pairs = zip(self.weights, shares, strict=True)
        return tuple(min(int(np.searchsorted(-weights, -share)), len(weights) - 1) for weights, share in pairs)


def knapsack(menus: Sequence[Menu], goal: Goal) -> Knapsack:
    """The knapsack problem of a goal and these menus."""
    seconds, usd = tuple(menu.seconds for menu in menus), tuple(menu.usd for menu in menus)
    if goal.objective is not Objective.CHEAPEST:
        return Knapsack(seconds, usd, inf if goal.budget_usd is None else goal.budget_usd)
    reverse = tuple(each[::-1] for each in usd), tuple(each[::-1] for each in seconds)
    return Knapsack(*reverse, inf if goal.deadline_s is None else goal.deadline_s)


def plan_of(method: str, menus: Sequence[Menu], goal: Goal, picks: Picks | None) -> StagePlan | None:
    """The plan of a solution of `knapsack(menus, goal)`; None if it breaks a limit."""
    if picks is None:
        return None
    if goal.objective is Objective.CHEAPEST:
        picks = tuple(len(menu) - 1 - pick for menu, pick in zip(menus, picks, strict=True))
    plan = as_plan(method, menus, picks)
    return plan if goal.allows(plan.usd, plan.seconds) else None


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A solution of the relaxed problem. It lies between two plans, `over` and `under` the limit; equal if no stage is
    split. `reduced`: the reduced cost of every point of every stage.
    """

    bound: float
    over: Picks
    under: Picks
    reduced: tuple[Floats, ...]


def relax(problem: Knapsack) -> Relaxed:
    """Solve the relaxed problem: the line through a plan over the limit and one under it gives the next price."""
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
    # lowered by a rounding error, so that it stays a lower bound
    bound = sum(least) - spent - ROUNDING * (sum(least) + spent) / 100
    return Relaxed(bound, over, under, tuple(each - low for each, low in zip(paid, least, strict=True)))


@dataclass(frozen=True, eq=False)
class Remainder:
    """remainder(w): the least value of some stages, relaxed, for the weight that is left for them."""

    weights: Floats
    values: Floats

    @classmethod
    def of(cls, hulls: Sequence[tuple[Floats, Floats]]) -> Remainder:
        """Of several stages, given the values and weights of the corners of each one's lower convex hull.

        Starts at the lightest points, and adds segments of more weight and less value, the steepest first.
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
        """A lower bound on the value of these stages with so much weight left; infinite if none is that light."""
        least: Floats = np.interp(left, self.weights, self.values)
        least[left < self.weights[0]] = np.inf
        return least
