"""The exact stage plan: branch and bound, with dynamic programming over Pareto frontiers of partial plans.

Our own. CE-scaling (section III-C) calls the problem NP-hard and solves it greedily. As a knapsack:

1. The relaxed problem (knapsack.py) bounds all plans. Its neighbour under the limit, improved with what is left of the
   limit, is the first good plan.
2. A point whose reduced cost exceeds the gap between bound and best plan is in no better plan: it is dropped.
3. The other points are merged by dynamic programming, over two Pareto frontiers of partial plans instead of one. Every
   stage is merged into the smaller frontier; at the end each partial plan of one is paired with the best of the other
   that still fits. A partial plan is kept if it is Pareto-minimal and, with the relaxed rest of the stages, below the
   best plan so far.
4. If too many points are left for that, the bound is loose: the stage that the relaxed problem splits has no point at
   the wanted weight. Its points are divided there, and both halves are solved, starting with the best plan so far.

The plan is optimal up to rounding: no plan that is 1e-12 of the limit below it is better by 1e-12 of its value. The
search starts with the best static plan (one allocation for all stages), so the result is never worse than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.epoch_model.boundary import hull
from mlcd.planners.functions.epoch_model.epoch import Ints
from mlcd.planners.functions.knapsack import ROUNDING, Knapsack, Picks, Relaxed, Remainder, knapsack, plan_of, relax
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, StageProblem, as_plan

FEW_POINTS = 500
"""With at most so many points of all stages together, they are merged."""

MOST_PLANS = 200_000
"""Most partial plans in one merge, before any is dropped: some 10 ms and 10 MB."""

Kept = tuple[Ints, ...]
"""For each stage the points that may still be in a better plan."""


def exact(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The optimal plan; None if no plan keeps the limits."""
    sack = knapsack(problem.menus, goal)
    if not sack.feasible:
        return None
    return plan_of("exact", problem.menus, goal, solve(sack, static_picks(problem, goal, sack)))


def solve(whole: Knapsack, best: Picks) -> Picks:
    """The points of least value within the limit. `best`: some points within it to start from."""
    to_search: list[Kept] = [tuple(np.arange(len(values)) for values in whole.values)]
    while to_search:
        kept = to_search.pop()
        best, halves = _search(whole, kept, best)
        to_search += halves
    return best


def _search(whole: Knapsack, kept: Kept, best: Picks) -> tuple[Picks, list[Kept]]:
    """The best plan so far, with these points considered; and halves of the points that are still to be searched."""
    part = whole.only(kept)
    if not part.feasible:
        return best, []
    relaxed = relax(part)
    best = _better_of(whole, best, kept, improved(part, relaxed.under))
    left = _worth_keeping(kept, relaxed, whole.value(best))
    few = whole.only(left)
    if not few.feasible:
        return best, []
    if few.points <= FEW_POINTS:
        try:
            return _better_of(whole, best, left, merge(few, whole.value(best))), []
        except TooManyPlans:
            pass
    return best, _halves(part, relaxed, few, left)


def _better_of(whole: Knapsack, best: Picks, kept: Kept, found: Picks | None) -> Picks:
    """The better one of the best plan so far and the plan found among the kept points."""
    if found is None:
        return best
    picks = tuple(int(at[pick]) for at, pick in zip(kept, found, strict=True))
    return picks if whole.value(picks) < whole.value(best) else best


def _worth_keeping(kept: Kept, relaxed: Relaxed, value: float) -> Kept:
    """The points that may be in a plan of a value below this one."""
    most = value * (1 - ROUNDING) - relaxed.bound
    return tuple(at[reduced < most] for at, reduced in zip(kept, relaxed.reduced, strict=True))


def _halves(part: Knapsack, relaxed: Relaxed, few: Knapsack, left: Kept) -> list[Kept]:
    """The points divided in two, in the stage with the widest split of the relaxed problem, at its weight there."""
    split = [float(v[u] - v[o]) for v, u, o in zip(part.values, relaxed.under, relaxed.over, strict=True)]
    divisible = [stage for stage, at in enumerate(left) if len(at) > 1]
    stage = max(divisible, key=lambda stage: (split[stage], len(left[stage])))
    wanted = part.limit - part.weight(relaxed.under) + float(part.weights[stage][relaxed.under[stage]])
    cut = int(np.searchsorted(-few.weights[stage], -wanted))
    cut = min(max(cut, 1), len(left[stage]) - 1)
    return [(*left[:stage], half, *left[stage + 1 :]) for half in (left[stage][:cut], left[stage][cut:])]


def improved(problem: Knapsack, picks: Picks) -> Picks:
    """Greedily spend what is left of the limit, each time in the stage where it gains the most."""
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
    """The best plan with one allocation for all stages; None if none keeps the limits."""
    best = [_best(method, menus, goal) for menus in problem.static_menus]
    plans = [plan for plan in best if plan is not None]
    if goal.objective is Objective.CHEAPEST:
        return min(plans, key=lambda plan: (plan.usd, plan.seconds), default=None)
    return min(plans, key=lambda plan: (plan.seconds, plan.usd), default=None)


def static_picks(problem: StageProblem, goal: Goal, sack: Knapsack) -> Picks:
    """Start points for `knapsack(problem.menus, goal)` that are no worse than the best static plan in any stage.

    If a stage has its own boundary, a point of it is at least as good as the static allocation. If no static plan keeps
    the limit on weight, the lightest points.
    """
    cheap = goal.objective is Objective.CHEAPEST
    alone = replace(goal, budget_usd=None) if cheap else replace(goal, deadline_s=None)
    plan = static_plan("static", problem, alone)
    if plan is None:
        return sack.lightest
    picks = sack.best_within([each.seconds if cheap else each.usd for each in plan.stages])
    return picks if sack.keeps(picks) else sack.lightest


def _best(method: str, menus: Sequence[Menu], goal: Goal) -> StagePlan | None:
    """The best static plan of these menus: the same point in each."""
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
    """There are too many partial plans to merge; try with fewer points."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """Pareto-minimal partial plans: weights rise, values fall. `trail`: for each stage the plans before, and points."""

    values: Floats
    weights: Floats
    stages: tuple[int, ...] = ()
    trail: tuple[tuple[Ints, Ints], ...] = ()

    def picks(self, plan: int) -> dict[int, int]:
        """The point of a plan in each of the frontier's stages."""
        points = {}
        for stage, (before, point) in zip(reversed(self.stages), reversed(self.trail), strict=True):
            points[stage] = int(point[plan])
            plan = int(before[plan])
        return points


def merge(problem: Knapsack, below: float) -> Picks | None:
    """The best plan of a value below `below`; None if there is none. Raises TooManyPlans."""
    corners = [hull(v, w) for v, w in zip(problem.values, problem.weights, strict=True)]
    hulls = [(v[at], w[at]) for v, w, at in zip(problem.values, problem.weights, corners, strict=True)]
    one = other = Frontier(np.zeros(1), np.zeros(1))
    for stage in sorted(range(len(hulls)), key=lambda stage: len(problem.values[stage])):
        if len(one.values) > len(other.values):
            one, other = other, one
        done = (*one.stages, stage)
        rest = Remainder.of([each for at, each in enumerate(hulls) if at not in done])
        one = _extended(problem, one, stage, rest, below)
        if not len(one.values):
            return None
    return _met(problem, one, other, below)


def _extended(problem: Knapsack, frontier: Frontier, stage: int, rest: Remainder, below: float) -> Frontier:
    points = len(problem.values[stage])
    if len(frontier.values) * points > MOST_PLANS:
        raise TooManyPlans
    values = np.add.outer(frontier.values, problem.values[stage]).ravel()
    weights = np.add.outer(frontier.weights, problem.weights[stage]).ravel()
    # slightly more than is left: summed in another order, a plan may weigh slightly less
    left = problem.limit * (1 + ROUNDING) - weights
    at = np.flatnonzero(values + rest.least_value(left) < below * (1 - ROUNDING))
    at = at[_minimal(values[at], weights[at])]
    trail = (*frontier.trail, (at // points, at % points))
    return Frontier(values[at], weights[at], (*frontier.stages, stage), trail)


def _minimal(values: Floats, weights: Floats) -> Ints:
    """Indices of the Pareto-minimal points, by rising weight."""
    order: Ints = np.lexsort((values, weights))
    least = np.minimum.accumulate(values[order])
    first: Ints = order[np.append(True, least[1:] < least[:-1])[: len(order)]]
    return first


def _met(problem: Knapsack, one: Frontier, other: Frontier, below: float) -> Picks | None:
    """The best pair within the limit: for each plan of one frontier, the heaviest of the other that still fits."""
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
        partner[plan] -= 1  # over the limit by a rounding error: try the next lighter one
        values[plan] = one.values[plan] + other.values[partner[plan]] if partner[plan] >= 0 else inf
