"""Time against cost: the Pareto boundary, its knee, the choice within limits, and where to measure before choosing.

The knee: Satopaa et al., 'Finding a Kneedle in a Haystack', 2011, by the `kneed` package, as Scavenger does.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.core.job import Objective


def pareto_mask(seconds: Floats, usd: Floats) -> NDArray[np.bool_]:
    """Which points no other beats: none is as fast and as cheap, and better in one of them."""
    mask = np.zeros(len(seconds), dtype=bool)
    best = (np.inf, np.nan)
    for i in np.lexsort((usd, seconds)):
        if usd[i] < best[0] or (usd[i], seconds[i]) == best:
            mask[i], best = True, (usd[i], seconds[i])
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
    y = usd[boundary]
    if (at := _kneedle(x, y)) is not None:
        return int(boundary[np.argmin(np.abs(x - at))])
    return int(boundary[np.argmin((x - x[0]) / (x[-1] - x[0]) + (y - y[-1]) / (y[0] - y[-1]))])


def _kneedle(x: Floats, y: Floats) -> float | None:
    from kneed import KneeLocator  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it finds none, and returns None
        at: float | None = KneeLocator(x, y, curve="convex", direction="decreasing").knee
    return at


def choose(
    seconds: Floats, usd: Floats, objective: Objective, deadline_s: float = np.inf, budget_usd: float = np.inf
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


def first_probes(nodes: Floats, local_batch: Floats) -> list[int]:
    """Where to measure step times when only a few may be: three levels of nodes, in local batch.

    Fewest nodes at both ends of the batch (computing), middle nodes at the smallest (synchronising), most in between.
    Scavenger measures the corners of the rectangle of nodes and global batch. On real clusters most of it does not fit
    memory, and the step from one node to two is a jump, so corners mislead (docs/methods/scavenger.md).
    """
    levels = np.unique(nodes)
    few, between, many = (by_batch(nodes, local_batch, k) for k in (levels[0], levels[len(levels) // 2], levels[-1]))
    return list(dict.fromkeys([few[0], few[-1], between[0], many[len(many) // 2]]))


def verified_choice(seconds: Floats, usd: Floats, objective: Objective, probed: Sequence[int]) -> int:
    """The choice, if it was measured; else the measured one that comes nearest to it."""
    best = choose(seconds, usd, objective)
    assert best is not None, "without limits there is always a choice"
    if best in probed:
        return best
    at = np.array(probed)
    slower, dearer = seconds[at] / seconds[best], usd[at] / usd[best]
    if objective is Objective.KNEE:
        return int(at[np.argmin(np.maximum(slower, dearer))])
    return int(at[np.argmin(slower if objective is Objective.FASTEST else dearer)])


def by_batch(nodes: Floats, batch: Floats, level: float) -> list[int]:
    """The points with so many nodes, the smallest batch first."""
    at = np.flatnonzero(nodes == level)
    return [int(i) for i in at[np.argsort(batch[at], kind="stable")]]
