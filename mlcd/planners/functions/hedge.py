"""Which allocation now, if nobody knows how many epochs there will be, but the loss curve will tell before the end.

Ours, beyond CE-scaling, which spends what is left on the epochs that are expected: if they become more, nothing is left
but the slowest. To pay for every epoch that may come, as if nothing would be learned on the way, holds back too much:
after some epochs the loss curve shows how many there will be, and what was held back for more is spent on the rest.

So, of R epochs that are left, m = SHOWN R (rounded up) are run before R is known; the others then get the best that is
left for. Until then it is chosen again before every epoch, and all that is known is that it was not the last. What an
epoch gets hence depends on the epochs that may still come then, and not on those that may come now: many are unlikely
at first, and little is held back for them; if they come, later epochs pay. By dynamic programming, backwards from the
last epoch k before which R may still be open, with l left of the limit:

    J_k(l) = min over theta of   c_k v(theta) + K_k(l - w(theta)) + J_k+1(l - w(theta))
    c_k    = sum of P(R) / V*(R) over all R with m >= k
    K_k(l) = sum over all R with m = k of   P(R) (R - k) v*(l / (R - k)) / V*(R),   MISS P(R) at the most

v*(w) is the least value of an epoch of weight w, on the lower convex hull of the menu (two allocations may take turns).
Somebody who knows R from the beginning would come to V*(R) = gone + R v*(limit / R): what matters is how many times the
best it takes. Where nothing is left for an epoch, a miss is counted for all R that are still open. R for which even V*
has no solution count for nothing: no choice would help. If what is made small has a limit, too, nothing is chosen that
is beyond it after the most epochs that both limits allow.

Symbols   v  value: what is made small, of one epoch        w  weight: what is limited, of one epoch
          P(R)  chance that R epochs are left               gone  value of the run so far
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal
from mlcd.planners.functions.beliefs.boundary import Boundary
from mlcd.planners.functions.beliefs.epoch import Ints
from mlcd.planners.functions.choice import ROUNDING, Epochs, joined, own_limit, sides

SHOWN = 0.75
"""The share of the epochs that are left after which the loss curve shows how many they are: see loss_curves.py."""
MISS = 7.4
"""A target that is missed counts as if it took so many times as long, or as much, as it had to. A choice of ours."""
KEPT = 0.02
"""What runs now is kept if an epoch on the best would come to no less than this below it, relatively."""
COARSE = 32
"""Allocations that are looked at first; then those around the best of them."""
LEVELS = 128
"""Of what is left: in between, costs are interpolated."""
STEPS = 40
"""Choices that are looked ahead; of more epochs, some in a row are one."""


@dataclass(frozen=True)
class Hedge:
    """What to run the epochs on, in their order, and the chance that they are too few."""

    epochs: Epochs
    risk: float


@dataclass(frozen=True)
class _Left:
    """What is left to choose from, and to do.

    `corners` of the menu's hull, with their `value` and `weight`, weights rising and values falling. `limit` on the sum
    of weights. `epochs`: each number R that may be left and can be done at all; `likely`: P(R); `share`: P(R) / V*(R).
    `block`: epochs of one step; `shown`: after how many epochs R is known.
    """

    corners: Ints
    value: Floats
    weight: Floats
    limit: float
    epochs: Ints
    likely: Floats
    share: Floats
    block: int
    shown: Ints

    @property
    def step(self) -> Ints:
        """After which R is known, from 1 on."""
        return -(-self.shown // self.block)


@dataclass(frozen=True)
class _Ahead:
    """What is expected from each step on. `cost`: c_k; `open`: the chance that R is not known before; both from 0 on.

    `after`: K_k + J_k+1, after each step (rows), with each level of what is left (columns).
    """

    left: _Left
    cost: Floats
    open: Floats
    after: Floats
    levels: Floats

    def expected(self, step: int, over: float, value: Floats, weight: Floats) -> Floats:
        """Of each allocation, for this step with so much left; infinite where that is too little."""
        then = over - self.left.block * weight
        found = self.cost[step] * self.left.block * value + np.interp(then, self.levels, self.after[step])
        return np.where(then >= -1e-9 * self.left.limit, np.minimum(found, MISS * self.open[step]), inf)

    def best(self, step: int, over: float) -> int | None:
        """The corner of the least expected; of equal ones the lightest. None if nothing is left for any."""
        left = self.left
        some = _some(len(left.value))
        coarse = self.expected(step, over, left.value[some], left.weight[some])
        at = int(np.argmin(coarse))
        if coarse[at] == inf:
            return None
        around = np.arange(some[max(0, at - 1)], some[min(len(some) - 1, at + 1)] + 1)
        return int(around[np.argmin(self.expected(step, over, left.value[around], left.weight[around]))])


def hedged(offered: Boundary, chances: Floats, goal: Goal, gone: float = 0.0, old: int | None = None) -> Hedge | None:
    """The plan, or None if not one epoch is within the limits. `chances`: S(1), S(2) ... `old`: what runs now."""
    left = _left(offered, chances, goal, gone)
    if left is None:
        return None
    ahead = _ahead(left)
    best = ahead.best(1, left.limit)
    if best is None:
        return None
    value, weight, _ = sides(offered, goal)
    chosen, least = int(left.corners[best]), float(left.value[best])
    if old is not None:
        now, kept = (float(ahead.expected(1, left.limit, value[[i]], weight[[i]])[0]) for i in (chosen, old))
        if kept <= now + KEPT * ahead.cost[1] * left.block * least:
            chosen = old
    epochs = _parts(ahead, chosen, weight)
    covered = sum(count for _, count in epochs)
    return Hedge(epochs, float(chances[covered]) if covered < len(chances) else 0.0) if epochs else None


def _left(offered: Boundary, chances: Floats, goal: Goal, gone: float) -> _Left | None:
    if not len(offered):
        return None
    value, weight, limit = sides(offered, goal)
    corners = offered.corners if weight[offered.corners[0]] <= weight[offered.corners[-1]] else offered.corners[::-1]
    v, w, own = value[corners], weight[corners], own_limit(goal)
    limit = min(limit, float(w[-1]) * len(chances)) * ROUNDING
    epochs, likely = np.arange(1, len(chances) + 1), chances - np.append(chances[1:], 0.0)
    known = epochs * _least(limit / epochs, w, v)
    possible = np.isfinite(known) & (known <= own) & (likely > 0)
    if not possible.any():
        return None
    epochs, likely, known = epochs[possible], likely[possible], known[possible]
    first = _slowest(v, w, limit, own, int(epochs[-1]))
    block = max(1, ceil(SHOWN * int(epochs[-1]) / STEPS))
    shown = np.minimum(epochs, block * np.ceil(SHOWN * epochs / block).astype(np.int64))
    share = likely / (gone + known)
    return _Left(corners[first:], v[first:], w[first:], limit, epochs, likely, share, block, shown)


def _slowest(value: Floats, weight: Floats, limit: float, own: float, epochs: int) -> int:
    """The first corner to choose from: so many epochs on it are within the own limit, alone or beside the next one."""
    first = int(np.argmax(value * epochs <= own * ROUNDING))
    return first - 1 if first and weight[first] * epochs > limit else first


def _least(share: Floats, weight: Floats, value: Floats) -> Floats:
    """v*: infinite where not even the lightest is within the share."""
    return np.where(share * ROUNDING >= weight[0], np.interp(share, weight, value), inf)


def _some(count: int) -> Ints:
    return np.unique(np.linspace(0, count - 1, COARSE).round().astype(np.int64))


def _ahead(left: _Left) -> _Ahead:
    """Backwards, from the last step on."""
    levels, step = np.linspace(0.0, left.limit, LEVELS), left.step
    last = int(step.max())
    cost, still = (np.array([each[step >= k].sum() for k in range(last + 1)]) for each in (left.share, left.likely))
    after, some = _known_then(left, levels, last), _some(len(left.value))
    then = (levels[:, None] - left.block * left.weight[some]) / levels[1]
    place = np.clip(then.astype(np.int64), 0, LEVELS - 2)
    above = np.clip(then - place, 0.0, 1.0)
    for k in range(last, 0, -1):
        found = cost[k] * left.block * left.value[some] + (1 - above) * after[k][place] + above * after[k][place + 1]
        after[k - 1] += np.where(then >= -1e-6, np.minimum(found, MISS * still[k]), MISS * still[k]).min(axis=1)
    return _Ahead(left, cost, still, after, levels)


def _known_then(left: _Left, levels: Floats, last: int) -> Floats:
    """K: what the other epochs come to, where R is known after a step (rows), by what is left (columns)."""
    rest, found = left.epochs - left.shown, np.zeros((last + 1, LEVELS))
    some = rest > 0
    others, likely = rest[some, None], left.likely[some, None]
    costs = left.share[some, None] * others * _least(levels / others, left.weight, left.value)
    np.add.at(found, left.step[some], np.minimum(costs, MISS * likely))
    return found


def _parts(ahead: _Ahead, chosen: int, weight: Floats) -> Epochs:
    """What is chosen if none is the last, up to the most epochs that are within the limit; these get the best then."""
    left, over = ahead.left, ahead.left.limit
    step = left.step
    covered: Epochs = ()
    parts: list[tuple[int, int]] = []
    for k in range(1, int(step.max()) + 1):
        if k > 1:
            best = ahead.best(k, over)
            if best is None:
                break
            chosen = int(left.corners[best])
        for epochs, shown in zip(left.epochs[step == k].tolist(), left.shown[step == k].tolist(), strict=True):
            now, later = shown - left.block * (k - 1), epochs - shown
            rest = over - now * float(weight[chosen])
            if rest >= -1e-9 * left.limit and (not later or rest / later * ROUNDING >= left.weight[0]):
                place = int(np.searchsorted(left.weight, rest / max(1, later) * ROUNDING, side="right")) - 1
                covered = joined([*parts, (chosen, now), (int(left.corners[max(0, place)]), later)])
        parts.append((chosen, left.block))
        over -= left.block * float(weight[chosen])
    return covered
