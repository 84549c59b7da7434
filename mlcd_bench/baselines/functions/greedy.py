"""CE-scaling's stage planner: starts with the best static plan and moves resources between stages while that helps.

Wu et al. (CE-scaling, IPDPS 2023), Algorithm 1; lines below are its lines. Value and weight: see knapsack.py; for time
within a budget they are T^h and C^h, for cost within a deadline the other way round, as section III-C2 asks for.

    a^s, a*      the static plan, the best so far       A_1   a* with one stage at a lower weight
    a^e, a^l     after recycling, after reallocating    A_2   a^l with one stage at a higher weight
    B            value gained for weight added, equations (10) and (12)

Where the paper is unclear or wrong:
- Line 4 selects by B too, but both its differences are negative then and the largest B would lose the most value for
  the weight that it frees. Here the stage that loses least for it is taken.
- Line 6 continues while a^l is within C^h(a^s), and so leaves the loop with a plan that is not. Here a plan over the
  limit is not a candidate, and the loop ends when none is left. Likewise lines 21 to 24, which put a plan over the
  budget aside and accept it all the same; and a plan of exactly the budget keeps it, by (8).
- 'Violating t', lines 10 and 18, is (9), the limit on the value itself. An accepted plan has less value than the one
  before it, so the limit is violated at the end or not at all, and is checked there.
- The paper does not say how far away a lower or higher weight is. The next point of a boundary of thousands changes
  only a negligible amount. Steps begin at half of a boundary and are halved when they no longer help, down to one
  point.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from mlcd.core.job import Goal
from mlcd.planners.functions.exact import static_picks
from mlcd.planners.functions.knapsack import Knapsack, Picks, knapsack, plan_of
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import StageProblem

NEGLIGIBLE = 1e-5
"""Relative delta of lines 10 and 18."""


def greedy(problem: StageProblem, goal: Goal) -> StagePlan | None:
    """The improved static plan, or the one of least weight if no static plan keeps the limit."""
    sack = knapsack(problem.menus, goal)
    if not sack.feasible:
        return None
    return plan_of("greedy", problem.menus, goal, partition(sack, static_picks(problem, goal, sack)))


def partition(sack: Knapsack, static: Picks) -> Picks:
    """Algorithm 1."""
    steps = _halves(max(len(values) for values in sack.values))
    best = static
    for step in steps:  # lines 2 to 14
        while True:
            moved = _filled(replace(sack, limit=sack.weight(static)), _recycled(sack, best, step), step)
            if _negligible(sack, best, moved):
                break
            best = moved
    for step in steps:  # lines 15 to 25
        best = _filled(sack, best, step)
    return best


def _halves(points: int) -> list[int]:
    steps = [max(1, points // 2)]
    while steps[-1] > 1:
        steps.append(steps[-1] // 2)
    return steps


def _recycled(sack: Knapsack, picks: Picks, step: int) -> Picks:
    """a^e: one stage at a lower weight, the one that loses least value for it; unchanged if there is none."""
    candidates = {}
    for stage, (values, weights, pick) in enumerate(zip(sack.values, sack.weights, picks, strict=True)):
        to = min(pick + step, len(values) - 1)
        freed = float(weights[pick] - weights[to])
        if freed > 0:
            candidates[_with(picks, stage, to)] = float(values[to] - values[pick]) / freed
    return min(candidates, key=candidates.__getitem__, default=picks)


def _filled(sack: Knapsack, picks: Picks, step: int) -> Picks:
    """a^l: stages at a higher weight, the largest B first, while one keeps the limit."""
    while True:
        slack = sack.limit - sack.weight(picks)
        room = sack.best_within([float(w[pick]) + slack for w, pick in zip(sack.weights, picks, strict=True)])
        benefit = {}
        for stage, (values, weights, pick) in enumerate(zip(sack.values, sack.weights, picks, strict=True)):
            to = max(room[stage], pick - step)
            gained, added = float(values[pick] - values[to]), float(weights[to] - weights[pick])
            moved = _with(picks, stage, to)
            if gained > 0 and sack.keeps(moved):
                benefit[moved] = gained / added if added > 0 else inf
        if not benefit:
            return picks
        picks = max(benefit, key=benefit.__getitem__)


def _negligible(sack: Knapsack, before: Picks, after: Picks) -> bool:
    return sack.value(before) - sack.value(after) <= NEGLIGIBLE * sack.value(before)


def _with(picks: Picks, stage: int, pick: int) -> Picks:
    return (*picks[:stage], pick, *picks[stage + 1 :])
