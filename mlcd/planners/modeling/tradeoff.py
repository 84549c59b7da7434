"""Time against cost: the Pareto boundary, its knee, and the choice for an objective within limits.

The knee: Satopaa et al., 'Finding a Kneedle in a Haystack', 2011, by the `kneed` package, as Scavenger does.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.core.job import Objective


def pareto_mask(seconds: Floats, usd: Floats) -> NDArray[np.bool_]:
    """Which points no other beats: none is as fast and as cheap, and better in one of them."""
    order = np.lexsort((usd, seconds))
    mask = np.zeros(len(order), dtype=bool)
    cheapest, fastest_of_it = np.inf, np.nan
    for i in order:
        equal = usd[i] == cheapest and seconds[i] == fastest_of_it
        if usd[i] < cheapest or equal:
            mask[i] = True
            cheapest, fastest_of_it = usd[i], seconds[i]
    return mask


def knee(seconds: Floats, usd: Floats) -> int:
    """The index of the knee of the Pareto boundary.

    Two points have none: the one with the smaller product of time and cost is taken. Where Kneedle finds none, the
    boundary bends nowhere: the point nearest to the ideal corner, both axes scaled to the boundary, is taken.
    """
    seconds, usd = np.asarray(seconds, float), np.asarray(usd, float)
    boundary = np.flatnonzero(pareto_mask(seconds, usd))
    boundary = boundary[np.argsort(seconds[boundary], kind="stable")]
    x, kept = np.unique(seconds[boundary], return_index=True)
    boundary = boundary[kept]
    if len(boundary) < 3:
        return int(boundary[np.argmin(seconds[boundary] * usd[boundary])])
    found = _kneedle(x, usd[boundary])
    if found is not None:
        return int(boundary[np.argmin(np.abs(x - found))])
    y = usd[boundary]
    return int(boundary[np.argmin((x - x[0]) / (x[-1] - x[0]) + (y - y[-1]) / (y[0] - y[-1]))])


def _kneedle(x: Floats, y: Floats) -> float | None:
    from kneed import KneeLocator  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it finds none, and returns None
        found = KneeLocator(x, y, curve="convex", direction="decreasing").knee
    return None if found is None else float(found)


def choose(
    seconds: Floats,
    usd: Floats,
    objective: Objective,
    deadline_s: float = np.inf,
    budget_usd: float = np.inf,
) -> int | None:
    """The index of the best point for an objective among those within both limits; None if none is."""
    seconds, usd = np.asarray(seconds, float), np.asarray(usd, float)
    within = np.flatnonzero((seconds <= deadline_s) & (usd <= budget_usd))
    if not len(within):
        return None
    if objective is Objective.KNEE:
        return int(within[knee(seconds[within], usd[within])])
    first, second = (seconds, usd) if objective is Objective.FASTEST else (usd, seconds)
    return int(within[np.lexsort((second[within], first[within]))[0]])
