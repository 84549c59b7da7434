"""Which allocations for epochs of which nobody knows how many there will be: certain ones get more than unlikely ones.

Ours, beyond CE-scaling, which spends what is left on the epochs that are expected: if they become more, nothing is left
but the slowest. Here every epoch i = 1..I that may be needed is planned and paid for, and its value counts by S(i).

    min sum_i S(i) v(theta_i)   s.t.   sum_i w(theta_i) <= limit

For a price p of weight, epoch i takes the corner of the menu's lower convex hull where S(i) v + p w is least: it goes
up from the lightest as long as a step's gain -dv/dw is above p / S(i). p is the least at which the sum is within the
limit; what is over then is used for whole steps, the earliest epochs first. That is less than one step of one epoch
above the optimum. Where v = a / w, it means w_i ~ sqrt(S(i)).

I is the last epoch that is likely enough (outlook.py), unless the limit is tight: near the lightest point of a menu a
few percent of weight can be a factor of fifty in value. To cover fewer epochs is faster and may miss the target, with
the chance of S(I + 1). I is chosen for the least of

    (gone + sum_i S(i) v(theta_i)) / (1 - S(I + 1))^CARE

With CARE = 1 it would be what is expected in all if a run that misses is made again; but it cannot be, within a limit.

Symbols   v  value: what is made small, of one epoch        w  weight: what is limited, of one epoch
          S(i)  chance that epoch i from now is needed      gone  value of the run so far
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np

from mlcd.configuration import Floats
from mlcd.job import Goal
from mlcd.modeling.serverless.epoch import Ints
from mlcd.planners.serverless.choice import ROUNDING, Epochs, Options, joined, own_limit, sides

CARE = 4.0
"""To miss the target with one percent more is worth it from so many percent of value on. A choice of ours."""
COVERAGES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""S(I) that are looked at."""
ALIKE = 0.1
"""Epochs whose values and weights are less apart than this, relatively, are run on one allocation."""
KEPT = 0.02
"""What runs now is kept if the expected value is not more than this above that of the best plan, relatively."""
HALVINGS = 40


@dataclass(frozen=True)
class Hedge:
    """What to run the epochs on, in their order, and the chance that they are too few."""

    epochs: Epochs
    risk: float


@dataclass(frozen=True)
class _Menu:
    """The corners of a hull, weights rising and values falling, and what each step gains for its weight: falling."""

    corners: Ints
    value: Floats
    weight: Floats
    gain: Floats

    def bought(self, price: Floats, chances: Floats) -> Ints:
        """For each price (rows) and epoch (columns), its corner."""
        return np.searchsorted(-self.gain, -price[:, None] / chances, side="left")


def hedged(offered: Options, chances: Floats, goal: Goal, gone: float = 0.0, old: int | None = None) -> Hedge | None:
    """The plan, or None if not one epoch is within the limits. `chances`: S(1), S(2) ... `old`: what runs now."""
    if not len(offered):
        return None
    value, weight, limit = sides(offered, goal)
    menu, allowed = _menu(offered, value, weight), limit * ROUNDING
    most = len(chances) if limit == inf else min(len(chances), int(allowed / menu.weight[0]))
    lengths = sorted({min(most, int((chances >= level).sum())) for level in COVERAGES} - {0})
    if not lengths:
        return None
    over, under = _prices(menu, chances, np.array(lengths), allowed)
    best, least = None, inf
    for length, high, low in zip(lengths, over, under, strict=True):
        expected = _expected(menu, chances[:length], high, low, allowed)
        risk = float(chances[length]) if length < len(chances) else 0.0
        score = log(max(gone + expected, 1e-300)) - CARE * log(1 - risk) if risk < 1 else inf
        if expected <= own_limit(goal) and score < least:
            best, least = (length, risk), score
    if best is None:
        return None
    length, risk = best
    found = _planned(menu, chances[:length], value, weight, allowed)
    return Hedge(_kept(found, old, menu, chances[:length], value, weight, allowed), risk)


def _planned(menu: _Menu, chances: Floats, value: Floats, weight: Floats, allowed: float) -> Epochs:
    """The best for all of these epochs."""
    (high,), (low,) = _prices(menu, chances, np.array([len(chances)]), allowed)
    return _in_blocks(menu.corners[_filled(menu, chances, high, low, allowed)], value, weight, menu, allowed)


def _menu(offered: Options, value: Floats, weight: Floats) -> _Menu:
    corners = offered.corners if weight[offered.corners[0]] <= weight[offered.corners[-1]] else offered.corners[::-1]
    v, w = value[corners], weight[corners]
    return _Menu(corners, v, w, -np.diff(v) / np.diff(w))


def _prices(menu: _Menu, chances: Floats, lengths: Ints, allowed: float) -> tuple[Floats, Floats]:
    """For so many epochs each, the least price at which they are allowed, and one just below, by halving in the log."""
    count = len(lengths)
    if not len(menu.gain):
        return np.ones(count), np.ones(count)
    counted = np.arange(len(chances)) < lengths[:, None]
    low = np.full(count, 0.5 * menu.gain[-1] * chances.min())
    high = np.full(count, 2.0 * menu.gain[0])
    enough = (menu.weight[menu.bought(low, chances)] * counted).sum(axis=1) <= allowed
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        fits = (menu.weight[menu.bought(middle, chances)] * counted).sum(axis=1) <= allowed
        high, low = np.where(fits, middle, high), np.where(fits, low, middle)
    return np.where(enough, low, high), low


def _expected(menu: _Menu, chances: Floats, high: float, low: float, allowed: float) -> float:
    """The expected value at a price between these, where the limit is used up."""
    kept, beyond = menu.bought(np.array([high, low]), chances)
    values = [float((chances * menu.value[at]).sum()) for at in (kept, beyond)]
    weights = [float(menu.weight[at].sum()) for at in (kept, beyond)]
    share = (allowed - weights[0]) / (weights[1] - weights[0]) if weights[1] > weights[0] else 0.0
    return values[0] + min(share, 1.0) * (values[1] - values[0])


def _filled(menu: _Menu, chances: Floats, high: float, low: float, allowed: float) -> Ints:
    """At the price, and what is over for the next steps, the earliest epochs first."""
    kept, beyond = menu.bought(np.array([high, low]), chances)
    steps = menu.weight[beyond] - menu.weight[kept]
    more = np.cumsum(steps) <= allowed - float(menu.weight[kept].sum())
    found: Ints = np.where(more, beyond, kept)
    return found


def _in_blocks(picks: Ints, value: Floats, weight: Floats, menu: _Menu, allowed: float) -> Epochs:
    """Epochs that are much alike as one block, on the corner of their mean weight: not a restart for every epoch.

    What is over then is for the first block that can use it, but never for more than the one before has.
    """
    blocks: list[list[int]] = []
    for pick in picks.tolist():
        first = blocks[-1][0] if blocks else pick
        near = value[pick] <= value[first] * (1 + ALIKE) and weight[pick] * (1 + ALIKE) >= weight[first]
        if blocks and near:
            blocks[-1].append(pick)
        else:
            blocks.append([pick])
    found = []
    for block in blocks:
        mean = float(weight[block].mean()) * ROUNDING
        found.append((int(menu.corners[np.searchsorted(menu.weight, mean, side="right") - 1]), len(block)))
    over, before = allowed - _total(found, weight), inf
    for k, (option, count) in enumerate(found):
        affordable = np.flatnonzero(weight <= min(weight[option] + over / count, before))
        better = int(affordable[np.lexsort((weight[affordable], value[affordable]))[0]])
        if value[better] < value[option]:
            found[k] = (better, count)
            break
        before = float(weight[option])
    return joined(found)


def _kept(
    found: Epochs, old: int | None, menu: _Menu, chances: Floats, value: Floats, weight: Floats, allowed: float
) -> Epochs:
    """With what runs now for the first block, and the best for the others then, if that is hardly worse."""
    count = found[0][1]
    rest = chances[count:]
    left = -inf if old is None else allowed - count * float(weight[old])
    if old is None or left < len(rest) * float(menu.weight[0]):
        return found
    then = _planned(menu, rest, value, weight, left) if len(rest) else ()
    instead = joined([(old, count), *then])
    before, after = (
        float(chances @ np.repeat(value[[option for option, _ in each]], [n for _, n in each]))
        for each in (found, instead)
    )
    return instead if after <= before * (1 + KEPT) else found


def _total(found: Sequence[tuple[int, int]], of: Floats) -> float:
    return sum(float(of[option]) * count for option, count in found)
