"""Which allocation for the epochs that are left, under what is left of the limits, if their number is taken as known.

Symbols   value  what is made small, of one epoch       weight  what is limited, of one epoch
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf
from operator import itemgetter

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.beliefs.boundary import Boundary

ROUNDING = 1 + 1e-9

Epochs = tuple[tuple[int, int], ...]
"""An option, and for how many epochs; one after the other."""


def fitting(offered: Boundary, goal: Goal, longer: float, dearer: float) -> Boundary:
    """Those of which one epoch is within the limits, even if it takes, and costs, so many times as much."""
    in_time = offered.cold_s * longer <= _limit(goal.deadline_s)
    return offered.only(in_time & (offered.cold_usd * dearer <= _limit(goal.budget_usd)))


def single(offered: Boundary, epochs: int, goal: Goal) -> Epochs | None:
    """The best allocation for all epochs (Algorithm 2, lines 5 and 13); None if none is within the limits."""
    kept = (offered.usd * epochs <= _limit(goal.budget_usd) * ROUNDING) & (
        offered.seconds * epochs <= _limit(goal.deadline_s) * ROUNDING
    )
    if not kept.any():
        return None
    value, weight, _ = sides(offered, goal)
    places = np.flatnonzero(kept)
    return ((int(places[np.lexsort((weight[places], value[places]))[0]]), epochs),)


def furthest(offered: Boundary, goal: Goal) -> int:
    """Where no plan is within the limits: on which most epochs are."""
    epochs = np.minimum(_limit(goal.budget_usd) / offered.usd, _limit(goal.deadline_s) / offered.seconds)
    return int(np.argmax(epochs))


def sides(offered: Boundary, goal: Goal) -> tuple[Floats, Floats, float]:
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
