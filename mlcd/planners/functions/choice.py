"""Choose an allocation for a known number of epochs, within what is left of the limits.

Symbols   value  of one epoch: what is minimised, seconds or dollars       weight  of one epoch: the other one, limited
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf
from operator import itemgetter

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.epoch_model.boundary import Boundary

ROUNDING = 1 + 1e-9

Schedule = tuple[tuple[int, int], ...]
"""(option, number of epochs) in the order of training; an option is an index into a `Boundary`."""


def options_within(offered: Boundary, goal: Goal, longer: float, dearer: float) -> Boundary:
    """The options of which one epoch keeps the limits even if it takes `longer` and costs `dearer` times as much."""
    in_time = offered.cold_s * longer <= _limit(goal.deadline_s)
    return offered.only(in_time & (offered.cold_usd * dearer <= _limit(goal.budget_usd)))


def best_single(offered: Boundary, epochs: int, goal: Goal) -> Schedule | None:
    """The best single option for all epochs (Algorithm 2, lines 5 and 13); None if none is within the limits."""
    kept = (offered.usd * epochs <= _limit(goal.budget_usd) * ROUNDING) & (
        offered.seconds * epochs <= _limit(goal.deadline_s) * ROUNDING
    )
    if not kept.any():
        return None
    value, weight, _ = value_and_weight(offered, goal)
    places = np.flatnonzero(kept)
    return ((int(places[np.lexsort((weight[places], value[places]))[0]]), epochs),)


def most_epochs(offered: Boundary, goal: Goal) -> int:
    """The option with which the limits allow the most epochs."""
    epochs = np.minimum(_limit(goal.budget_usd) / offered.usd, _limit(goal.deadline_s) / offered.seconds)
    return int(np.argmax(epochs))


def value_and_weight(offered: Boundary, goal: Goal) -> tuple[Floats, Floats, float]:
    """The options' values and weights, and the limit on the sum of weights."""
    if goal.objective is Objective.CHEAPEST:
        return offered.usd, offered.seconds, _limit(goal.deadline_s)
    return offered.seconds, offered.usd, _limit(goal.budget_usd)


def limit_on_value(goal: Goal) -> float:
    """The limit on the sum of values, which are minimised as well."""
    return _limit(goal.budget_usd if goal.objective is Objective.CHEAPEST else goal.deadline_s)


def merged(parts: Sequence[tuple[int, int]]) -> Schedule:
    """The schedule of these parts, with empty parts dropped and neighbours of the same option merged."""
    runs = groupby((part for part in parts if part[1]), key=itemgetter(0))
    return tuple((option, sum(count for _, count in alike)) for option, alike in runs)


def _limit(value: float | None) -> float:
    return inf if value is None else value
