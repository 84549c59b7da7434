"""Which allocation for the epochs that are left, under what is left of the limits, if their number is taken as known.

Symbols   value  what is made small, of one epoch       weight  what is limited, of one epoch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import inf
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.beliefs.boundary import Boundary
from mlcd.planners.functions.beliefs.epoch import Ints
from mlcd.planners.functions.knapsack import hull
from mlcd.planners.functions.nouns import Allocation

ROUNDING = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Options:
    """What an epoch may be run on: points of a boundary, with the seconds (rising) and dollars (falling) of one."""

    boundary: Boundary
    places: NDArray[np.intp]
    seconds: Floats
    usd: Floats
    cold: tuple[Floats, Floats]
    """Seconds and dollars of an epoch whose functions were not called ahead."""
    plain: Options | None = None
    """The same at another pace: it has the same corners."""

    @cached_property
    def corners(self) -> Ints:
        """Of the lower convex hull, seconds rising."""
        return self.plain.corners if self.plain is not None else hull(self.seconds, self.usd)

    def paced(self, slower: float, dearer: float) -> Options:
        """With epochs that take, and cost, so many times as much."""
        cold_s, cold_usd = self.cold
        cold = cold_s * slower, cold_usd * dearer
        return Options(self.boundary, self.places, self.seconds * slower, self.usd * dearer, cold, self)

    def __len__(self) -> int:
        return len(self.places)

    def allocation(self, i: int) -> Allocation:
        """Of one of them."""
        return self.boundary.allocation(int(self.places[i]))

    def place(self, where: Allocation) -> int | None:
        """Of an allocation, if it is one of them."""
        points = self.boundary
        same = (points.functions[self.places] == where.functions) & (points.memory_mb[self.places] == where.memory_mb)
        return next((int(i) for i in np.flatnonzero(same) if self.allocation(int(i)) == where), None)

    def only(self, kept: NDArray[np.bool_]) -> Options:
        """These of them."""
        cold = self.cold[0][kept], self.cold[1][kept]
        return Options(self.boundary, self.places[kept], self.seconds[kept], self.usd[kept], cold)

    def without(self, allocations: frozenset[Allocation], memory_mb: int = 0) -> Options:
        """Leave these out, and all with no more memory than this."""
        kept = self.boundary.memory_mb[self.places] > memory_mb
        if allocations:
            kept &= np.array([self.allocation(i) not in allocations for i in range(len(self))], dtype=bool)
        return self.only(kept)

    def fitting(self, goal: Goal, longer: float, dearer: float) -> Options:
        """Those of which one epoch is within the limits, even if it takes, and costs, so many times as much."""
        seconds, usd = self.cold
        return self.only((usd * dearer <= _limit(goal.budget_usd)) & (seconds * longer <= _limit(goal.deadline_s)))


Epochs = tuple[tuple[int, int], ...]
"""An option, and for how many epochs; one after the other."""


def options(points: Boundary, cold: tuple[Floats, Floats] | None = None) -> Options:
    """All of a boundary. `cold`: what they take if they are not called ahead, where the boundary counts on that."""
    return Options(points, np.arange(len(points)), points.seconds, points.usd, cold or (points.seconds, points.usd))


def single(offered: Options, epochs: int, goal: Goal) -> Epochs | None:
    """The best allocation for all epochs (Algorithm 2, lines 5 and 13); None if none is within the limits."""
    kept = (offered.usd * epochs <= _limit(goal.budget_usd) * ROUNDING) & (
        offered.seconds * epochs <= _limit(goal.deadline_s) * ROUNDING
    )
    if not kept.any():
        return None
    value, weight, _ = sides(offered, goal)
    places = np.flatnonzero(kept)
    return ((int(places[np.lexsort((weight[places], value[places]))[0]]), epochs),)


def furthest(offered: Options, goal: Goal) -> int:
    """Where no plan is within the limits: on which most epochs are."""
    epochs = np.minimum(_limit(goal.budget_usd) / offered.usd, _limit(goal.deadline_s) / offered.seconds)
    return int(np.argmax(epochs))


def sides(offered: Options, goal: Goal) -> tuple[Floats, Floats, float]:
    """Value, weight, and the limit on the sum of weights."""
    if goal.objective is Objective.CHEAPEST:
        return offered.usd, offered.seconds, _limit(goal.deadline_s)
    return offered.seconds, offered.usd, _limit(goal.budget_usd)


def own_limit(goal: Goal) -> float:
    """On what is made small."""
    return _limit(goal.budget_usd if goal.objective is Objective.CHEAPEST else goal.deadline_s)


def joined(parts: Sequence[tuple[int, int]]) -> Epochs:
    """Without empty parts, and each option once in a row."""
    runs = groupby((part for part in parts if part[1]), key=itemgetter(0))
    return tuple((option, sum(count for _, count in alike)) for option, alike in runs)


def _limit(value: float | None) -> float:
    return inf if value is None else value
