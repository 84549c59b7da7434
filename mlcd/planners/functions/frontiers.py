"""Frontiers of partial plans, merged stage by stage under a bound.

Dynamic programming over two Pareto frontiers instead of one: every stage is merged into the smaller of them, and in
the end each partial plan of the one meets the best of the other that it leaves room for. A partial plan stays if it is
Pareto-minimal and, with the relaxed rest of the stages, below the plan that is to be beaten.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.functions.beliefs.epoch import Ints
from mlcd.planners.functions.knapsack import ROUNDING, Knapsack, Picks, Rest, Segments

MOST_PLANS = 200_000
"""Partial plans in one merge, before any is dropped: some 10 ms and 10 MB."""


class TooManyPlans(Exception):
    """More partial plans than are worth looking at; to be asked again with fewer points."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """Pareto-minimal partial plans: weights rise, values fall. `trail`: for each stage where a plan came from."""

    values: Floats
    weights: Floats
    stages: tuple[int, ...] = ()
    trail: tuple[tuple[Ints, Ints], ...] = ()

    def picks(self, plan: int) -> dict[int, int]:
        """For each of its stages the point that a plan takes."""
        found = {}
        for stage, (before, point) in zip(reversed(self.stages), reversed(self.trail), strict=True):
            found[stage] = int(point[plan])
            plan = int(before[plan])
        return found


def merge(problem: Knapsack, below: float) -> Picks | None:
    """The best plan of a value below this one; None if there is none. Raises TooManyPlans."""
    segments = [Segments.of(v, w) for v, w in zip(problem.values, problem.weights, strict=True)]
    one = other = Frontier(np.zeros(1), np.zeros(1))
    for stage in sorted(range(len(segments)), key=lambda stage: len(problem.values[stage])):
        if len(one.values) > len(other.values):
            one, other = other, one
        done = (*one.stages, stage)
        rest = Rest.of(each for at, each in enumerate(segments) if at not in done)
        one = _extended(problem, one, stage, rest, below)
        if not len(one.values):
            return None
    return _met(problem, one, other, below)


def _extended(problem: Knapsack, frontier: Frontier, stage: int, rest: Rest, below: float) -> Frontier:
    points = len(problem.values[stage])
    if len(frontier.values) * points > MOST_PLANS:
        raise TooManyPlans
    values = np.add.outer(frontier.values, problem.values[stage]).ravel()
    weights = np.add.outer(frontier.weights, problem.weights[stage]).ravel()
    # a hair more than is left: what a plan weighs in another order of its stages may be a hair less
    left = problem.limit * (1 + ROUNDING) - weights
    at = np.flatnonzero(values + rest.least_value(left) < below * (1 - ROUNDING))
    at = at[_minimal(values[at], weights[at])]
    trail = (*frontier.trail, (at // points, at % points))
    return Frontier(values[at], weights[at], (*frontier.stages, stage), trail)


def _minimal(values: Floats, weights: Floats) -> Ints:
    """The Pareto-minimal ones, by rising weight."""
    order: Ints = np.lexsort((values, weights))
    least = np.minimum.accumulate(values[order])
    first: Ints = order[np.append(True, least[1:] < least[:-1])[: len(order)]]
    return first


def _met(problem: Knapsack, one: Frontier, other: Frontier, below: float) -> Picks | None:
    """The best pair within the limit: for each of one frontier, the heaviest of the other that still fits."""
    room = problem.limit * (1 + ROUNDING) - one.weights
    partner = np.searchsorted(other.weights, room, side="right") - 1
    values = np.where(partner >= 0, one.values + other.values[partner], inf)
    while True:
        plan = int(values.argmin())
        if values[plan] >= below:
            return None
        points = one.picks(plan) | other.picks(int(partner[plan]))
        picks = tuple(points[stage] for stage in range(len(points)))
        if problem.keeps(picks):
            return picks
        partner[plan] -= 1  # over the limit by a rounding error: the next lighter one
        values[plan] = one.values[plan] + other.values[partner[plan]] if partner[plan] >= 0 else inf
