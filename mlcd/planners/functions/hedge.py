"""Choose allocations while the number of epochs is uncertain and the loss curve will reveal it before the end.

Ours, beyond CE-scaling, which spends all of the limit on the expected epochs: if more are needed, only the slowest
allocation is left. Reserving enough for every epoch that may be needed, as if nothing would be learned on the way, is
too careful: after some epochs the loss curve shows how many there will be, and the reserve can be spent.

So, of R epochs that are left, m = KNOWN_AFTER R (rounded up) run before R is known; the others then get the best that
the rest of the limit allows. Until then the allocation is chosen again before every epoch, knowing only that the last
epoch did not reach the target. So what an epoch may use depends on the epochs that can still follow at that point.
Little is reserved for epochs that are unlikely now; if they are needed after all, later epochs are slower. This is
dynamic programming, backwards from the last epoch k before which R may still be unknown, with l left of the limit:

    J_k(l) = min over theta of   c_k v(theta) + K_k(l - w(theta)) + J_k+1(l - w(theta))
    c_k    = sum of P(R) / V*(R) over all R with m >= k
    K_k(l) = sum over all R with m = k of   P(R) (R - k) v*(l / (R - k)) / V*(R),   at most MISS_PENALTY P(R)

v*(w) is the least value of an epoch of weight w, on the lower convex hull of the options (two allocations may
alternate). With R known from the beginning, the value would be V*(R) = spent + R v*(limit / R); the expected ratio to
it is minimised. If nothing is left for an epoch, all R that are still possible count as missed. R for which even V* has
no solution are ignored: no choice would help. If the value has a limit, too, nothing is chosen that exceeds it after
the most epochs that both limits allow.

Symbols   v     value of one epoch: what is minimised     w      weight of one epoch: what is limited
          P(R)  probability that R epochs are left        spent  value of the run so far
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal
from mlcd.planners.functions.choice import ROUNDING, Schedule, limit_on_value, merged, value_and_weight
from mlcd.planners.functions.epoch_model.boundary import Boundary
from mlcd.planners.functions.epoch_model.epoch import Ints

KNOWN_AFTER = 0.75
"""The share of the remaining epochs after which the loss curve shows how many they are: measured by
benchmarks/loss_curves.py."""
MISS_PENALTY = 7.4
"""A missed target counts as so many times the best possible time, or cost. Our choice."""
KEEP_WITHIN = 0.02
"""The current allocation is kept if it is expected to be at most this share of an epoch worse than the best one."""
COARSE_POINTS = 32
"""Allocations that are evaluated first; then all those around the best of them."""
LEVELS = 128
"""Grid points of what is left of the limit; between them, costs are interpolated."""
STEPS = 40
"""Most decisions to look ahead; with more epochs, one decision is about several in a row."""


@dataclass(frozen=True)
class Hedge:
    """The allocations of the next epochs, and the chance that these epochs are too few."""

    epochs: Schedule
    risk: float


@dataclass(frozen=True)
class _Problem:
    """The options, and the epochs that may be needed.

    `corners` of the options' hull, with their `value` and `weight`, weights rising and values falling. `limit` on the
    sum of weights. `epochs`: each number R that is possible within the limits; `chance`: P(R); `share`: P(R) / V*(R).
    `block`: epochs of one step; `known_after`: the number of epochs after which R is known.
    """

    corners: Ints
    value: Floats
    weight: Floats
    limit: float
    epochs: Ints
    chance: Floats
    share: Floats
    block: int
    known_after: Ints

    @property
    def step(self) -> Ints:
        """The step after which R is known, from 1 on."""
        return -(-self.known_after // self.block)


@dataclass(frozen=True)
class _CostToGo:
    """Expected costs from each step on. `cost`: c_k; `open`: the chance that R is not known before; both from 0 on.

    `after`: K_k + J_k+1, after each step (rows), by what is left of the limit (columns, at `levels`).
    """

    problem: _Problem
    cost: Floats
    open: Floats
    after: Floats
    levels: Floats

    def expected(self, step: int, left: float, value: Floats, weight: Floats) -> Floats:
        """The expected cost of each allocation for this step; infinite if it exceeds what is left."""
        block, then = self.problem.block, left - self.problem.block * weight
        total = self.cost[step] * block * value + np.interp(then, self.levels, self.after[step])
        return np.where(then >= -1e-9 * self.problem.limit, np.minimum(total, MISS_PENALTY * self.open[step]), inf)

    def best(self, step: int, left: float) -> int | None:
        """The corner of the least expected cost; of equal ones the lightest. None if all exceed what is left."""
        value, weight = self.problem.value, self.problem.weight
        some = _coarse_points(len(value))
        coarse = self.expected(step, left, value[some], weight[some])
        at = int(np.argmin(coarse))
        if coarse[at] == inf:
            return None
        around = np.arange(some[max(0, at - 1)], some[min(len(some) - 1, at + 1)] + 1)
        return int(around[np.argmin(self.expected(step, left, value[around], weight[around]))])


def hedged_plan(
    options: Boundary, survival: Floats, goal: Goal, spent: float = 0.0, old: int | None = None
) -> Hedge | None:
    """The plan, or None if not one epoch is within the limits.

    `survival`: S(1), S(2) ..., the chance that each epoch is needed. `old`: the current option.
    """
    problem = _problem(options, survival, goal, spent)
    if problem is None:
        return None
    costs = _cost_to_go(problem)
    best = costs.best(1, problem.limit)
    if best is None:
        return None
    value, weight, _ = value_and_weight(options, goal)
    chosen, least = int(problem.corners[best]), float(problem.value[best])
    if old is not None:
        new_cost, old_cost = (
            float(costs.expected(1, problem.limit, value[[i]], weight[[i]])[0]) for i in (chosen, old)
        )
        if old_cost <= new_cost + KEEP_WITHIN * costs.cost[1] * problem.block * least:
            chosen = old
    epochs = _schedule(costs, chosen, weight)
    covered = sum(count for _, count in epochs)
    return Hedge(epochs, float(survival[covered]) if covered < len(survival) else 0.0) if epochs else None


def _problem(options: Boundary, survival: Floats, goal: Goal, spent: float) -> _Problem | None:
    if not len(options):
        return None
    value, weight, limit = value_and_weight(options, goal)
    corners = options.corners if weight[options.corners[0]] <= weight[options.corners[-1]] else options.corners[::-1]
    v, w, value_limit = value[corners], weight[corners], limit_on_value(goal)
    limit = min(limit, float(w[-1]) * len(survival)) * ROUNDING
    epochs, chance = np.arange(1, len(survival) + 1), survival - np.append(survival[1:], 0.0)
    best = epochs * _least_value(limit / epochs, w, v)
    possible = np.isfinite(best) & (best <= value_limit) & (chance > 0)
    if not possible.any():
        return None
    epochs, chance, best = epochs[possible], chance[possible], best[possible]
    first = _first_allowed(v, w, limit, value_limit, int(epochs[-1]))
    block = max(1, ceil(KNOWN_AFTER * int(epochs[-1]) / STEPS))
    known_after = np.minimum(epochs, block * np.ceil(KNOWN_AFTER * epochs / block).astype(np.int64))
    share = chance / (spent + best)
    return _Problem(corners[first:], v[first:], w[first:], limit, epochs, chance, share, block, known_after)


def _first_allowed(value: Floats, weight: Floats, limit: float, value_limit: float, epochs: int) -> int:
    """The first corner on which so many epochs keep the limit on value, alone or alternating with the next corner."""
    first = int(np.argmax(value * epochs <= value_limit * ROUNDING))
    return first - 1 if first and weight[first] * epochs > limit else first


def _least_value(share: Floats, weight: Floats, value: Floats) -> Floats:
    """v*; infinite if even the lightest corner exceeds the share."""
    return np.where(share * ROUNDING >= weight[0], np.interp(share, weight, value), inf)


def _coarse_points(count: int) -> Ints:
    return np.unique(np.linspace(0, count - 1, COARSE_POINTS).round().astype(np.int64))


def _cost_to_go(problem: _Problem) -> _CostToGo:
    """J, backwards from the last step."""
    levels, step = np.linspace(0.0, problem.limit, LEVELS), problem.step
    last = int(step.max())
    cost, open_ = (np.array([e[step >= k].sum() for k in range(last + 1)]) for e in (problem.share, problem.chance))
    after, some = _cost_when_known(problem, levels, last), _coarse_points(len(problem.value))
    then = (levels[:, None] - problem.block * problem.weight[some]) / levels[1]
    place = np.clip(then.astype(np.int64), 0, LEVELS - 2)
    above = np.clip(then - place, 0.0, 1.0)
    for k in range(last, 0, -1):
        now = cost[k] * problem.block * problem.value[some]
        total = now + (1 - above) * after[k][place] + above * after[k][place + 1]
        missed = MISS_PENALTY * open_[k]
        after[k - 1] += np.where(then >= -1e-6, np.minimum(total, missed), missed).min(axis=1)
    return _CostToGo(problem, cost, open_, after, levels)


def _cost_when_known(problem: _Problem, levels: Floats, last: int) -> Floats:
    """K: the cost of the other epochs once R is known, after each step (rows), by what is left (columns)."""
    others, costs_after = problem.epochs - problem.known_after, np.zeros((last + 1, LEVELS))
    some = others > 0
    count, chance = others[some, None], problem.chance[some, None]
    costs = problem.share[some, None] * count * _least_value(levels / count, problem.weight, problem.value)
    np.add.at(costs_after, problem.step[some], np.minimum(costs, MISS_PENALTY * chance))
    return costs_after


def _schedule(costs: _CostToGo, chosen: int, weight: Floats) -> Schedule:
    """The allocations if no epoch is the last, for the most epochs that keep the limit; those after R is known get the
    best that is left."""
    problem, left = costs.problem, costs.problem.limit
    step = problem.step
    covered: Schedule = ()
    parts: list[tuple[int, int]] = []
    for k in range(1, int(step.max()) + 1):
        if k > 1:
            best = costs.best(k, left)
            if best is None:
                break
            chosen = int(problem.corners[best])
        at_step = zip(problem.epochs[step == k].tolist(), problem.known_after[step == k].tolist(), strict=True)
        for epochs, known_after in at_step:
            now, later = known_after - problem.block * (k - 1), epochs - known_after
            rest = left - now * float(weight[chosen])
            if rest >= -1e-9 * problem.limit and (not later or rest / later * ROUNDING >= problem.weight[0]):
                place = int(np.searchsorted(problem.weight, rest / max(1, later) * ROUNDING, side="right")) - 1
                covered = merged([*parts, (chosen, now), (int(problem.corners[max(0, place)]), later)])
        parts.append((chosen, problem.block))
        left -= problem.block * float(weight[chosen])
    return covered
