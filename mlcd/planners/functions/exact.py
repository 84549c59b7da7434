"""The exact stage plan: frontiers of partial plans merged stage by stage, under a bound.

Our own. CE-scaling (section III-C) calls the problem NP-hard and solves it greedily. Of a knapsack:

1. The relaxed problem (knapsack.py) bounds every plan. The plan under the limit next to it, improved with what is
   left of the limit, is the first good one.
2. A point whose reduced cost is more than what lies between the bound and the best plan is in no better plan: dropped.
3. What is left is merged by dynamic programming over two Pareto frontiers of partial plans instead of one: every stage
   is merged into the smaller of them, and in the end each partial plan of the one meets the best of the other that it
   leaves room for. A partial plan stays if it is Pareto-minimal and, with the relaxed rest of the stages, below the
   plan that is to be beaten.
4. Where too much is left for that, the bound is loose: the stage that the relaxed problem splits has no point where it
   would like to have one. Its points are divided there, and both halves are solved, the best plan so far in hand.

The plan is the best one but for rounding: none is better by 1e-12 of its value that has 1e-12 of the limit to spare.
It begins with the best static plan in hand, one allocation for all stages, so that not even rounding can make it worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.beliefs.boundary import hull
from mlcd.planners.functions.beliefs.epoch import Ints
from mlcd.planners.functions.knapsack import ROUNDING, Knapsack, Picks, Relaxed, Rest, knapsack, plan_of, relax
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, StageProblem, as_plan

FEW = 500
"""Points of all stages together that are worth merging."""

MOST_PLANS = 200_000
"""Partial plans in one merge, before any is dropped: some 10 ms and 10 MB."""

Kept = tuple[Ints, ...]
"""For each stage the points that are still in question."""


def exact(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best plan there is."""
    sack = knapsack(problem.menus, goal)
    if not sack.feasible:
        return None
    return plan_of("exact", problem.menus, goal, solve(sack, static_picks(problem, goal, sack)))


def solve(whole: Knapsack, best: Picks) -> Picks:
    """The points of the least value within the limit, given some that are within it."""
    ahead: list[Kept] = [tuple(np.arange(len(values)) for values in whole.values)]
    while ahead:
        kept = ahead.pop()
        best, halves = _search(whole, kept, best)
        ahead += halves
    return best


def _search(whole: Knapsack, kept: Kept, best: Picks) -> tuple[Picks, list[Kept]]:
    """The best plan with these points, or the one in hand; and the halves to look at where that is still open."""
    part = whole.only(kept)
    if not part.feasible:
        return best, []
    relaxed = relax(part)
    best = _better(whole, best, kept, improved(part, relaxed.under))
    left = _worth(kept, relaxed, whole.value(best))
    few = whole.only(left)
    if not few.feasible:
        return best, []
    if few.points <= FEW:
        try:
            return _better(whole, best, left, merge(few, whole.value(best))), []
        except TooManyPlans:
            pass
    return best, _halves(part, relaxed, few, left)


def _better(whole: Knapsack, best: Picks, kept: Kept, found: Picks | None) -> Picks:
    """What was found among the kept points, or the best so far if that is no worse."""
    if found is None:
        return best
    picks = tuple(int(at[pick]) for at, pick in zip(kept, found, strict=True))
    return picks if whole.value(picks) < whole.value(best) else best


def _worth(kept: Kept, relaxed: Relaxed, value: float) -> Kept:
    """The points that may be in a plan below this value."""
    most = value * (1 - ROUNDING) - relaxed.bound
    return tuple(at[reduced < most] for at, reduced in zip(kept, relaxed.reduced, strict=True))


def _halves(part: Knapsack, relaxed: Relaxed, few: Knapsack, left: Kept) -> list[Kept]:
    """The points divided in the stage that the relaxed problem splits the widest, at the weight it wants there."""
    apart = [float(v[u] - v[o]) for v, u, o in zip(part.values, relaxed.under, relaxed.over, strict=True)]
    open_ = [stage for stage, at in enumerate(left) if len(at) > 1]
    stage = max(open_, key=lambda stage: (apart[stage], len(left[stage])))
    wanted = part.limit - part.weight(relaxed.under) + float(part.weights[stage][relaxed.under[stage]])
    cut = int(np.searchsorted(-few.weights[stage], -wanted))
    cut = min(max(cut, 1), len(left[stage]) - 1)
    return [(*left[:stage], half, *left[stage + 1 :]) for half in (left[stage][:cut], left[stage][cut:])]


def improved(problem: Knapsack, picks: Picks) -> Picks:
    """With what is left of the limit spent in one stage after the other, where it gains the most."""
    while True:
        slack = problem.limit - problem.weight(picks)
        then = problem.best_within([float(w[pick]) + slack for w, pick in zip(problem.weights, picks, strict=True)])
        gains = [float(v[a] - v[b]) for v, a, b in zip(problem.values, picks, then, strict=True)]
        stage = int(np.argmax(gains))
        moved = (*picks[:stage], then[stage], *picks[stage + 1 :])
        if gains[stage] <= 0 or not problem.keeps(moved):
            return picks
        picks = moved


def static_plan(method: str, problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The best plan with one allocation for all stages; None if not one of them keeps the limits."""
    plans = [_best(method, menus, goal) for menus in problem.static_menus]
    found = [plan for plan in plans if plan is not None]
    if goal.objective is Objective.CHEAPEST:
        return min(found, key=lambda plan: (plan.usd, plan.seconds), default=None)
    return min(found, key=lambda plan: (plan.seconds, plan.usd), default=None)


def static_picks(problem: StageProblem, goal: Goal, sack: Knapsack) -> Picks:
    """Where to begin from in `knapsack(problem.menus, goal)`: what is no worse than the best static plan anywhere.

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
        if goal.allows(plan.usd, plan.seconds):
            return plan
    return None


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
    corners = [hull(v, w) for v, w in zip(problem.values, problem.weights, strict=True)]
    hulls = [(v[at], w[at]) for v, w, at in zip(problem.values, problem.weights, corners, strict=True)]
    one = other = Frontier(np.zeros(1), np.zeros(1))
    for stage in sorted(range(len(hulls)), key=lambda stage: len(problem.values[stage])):
        if len(one.values) > len(other.values):
            one, other = other, one
        done = (*one.stages, stage)
        rest = Rest.of([each for at, each in enumerate(hulls) if at not in done])
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
