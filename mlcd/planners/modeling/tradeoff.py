"""Time against cost: the Pareto front, its knee, the best choice within limits, and where to measure first.

The knee: Satopaa et al., 'Finding a Kneedle in a Haystack', 2011, from the `kneed` package, as in Scavenger.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.core.job import Objective


def pareto_mask(seconds: Floats, usd: Floats) -> NDArray[np.bool_]:
    """Which points are Pareto-optimal: no other is as fast and as cheap, and better in one of the two."""
    mask = np.zeros(len(seconds), dtype=bool)
    best = (np.inf, np.nan)
    for i in np.lexsort((usd, seconds)):
        if usd[i] < best[0] or (usd[i], seconds[i]) == best:
            mask[i], best = True, (usd[i], seconds[i])
    return mask


def knee(seconds: Floats, usd: Floats) -> int:
    """The index of the knee of the Pareto front.

    Of one or two points, the one with the smallest product of time and cost. If Kneedle finds no knee, the point with
    the smallest sum of both axes, each scaled to the range of the front.
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
        warnings.simplefilter("ignore")  # if it finds no knee, it warns and returns None
        at: float | None = KneeLocator(x, y, curve="convex", direction="decreasing").knee
    return at


def choose(
    seconds: Floats, usd: Floats, objective: Objective, deadline_s: float = np.inf, budget_usd: float = np.inf
) -> int | None:
    """The index of the best point within both limits, by the objective; None if no point is."""
    seconds, usd = np.asarray(seconds, float), np.asarray(usd, float)
    within = np.flatnonzero((seconds <= deadline_s) & (usd <= budget_usd))
    if not len(within):
        return None
    if objective is Objective.KNEE:
        return int(within[knee(seconds[within], usd[within])])
    first, second = (seconds, usd) if objective is Objective.FASTEST else (usd, seconds)
    return int(within[np.lexsort((second[within], first[within]))[0]])


def first_probes(nodes: Floats, local_batch: Floats) -> list[int]:
    """The first four points at which to measure step times, by nodes and local batch.

    Fewest nodes with the smallest and the largest batch (computation), a middle number with the smallest batch
    (synchronization), most nodes with a middle batch. Scavenger measures the corners of the rectangle of nodes and
    global batch instead. On real clusters most of that rectangle does not fit the memory, and the step from one node to
    two is a jump, so the corners mislead (docs/methods/scavenger.md).
    """
    levels = np.unique(nodes)
    few, between, many = (by_batch(nodes, local_batch, k) for k in (levels[0], levels[len(levels) // 2], levels[-1]))
    return list(dict.fromkeys([few[0], few[-1], between[0], many[len(many) // 2]]))


def verified_choice(seconds: Floats, usd: Floats, objective: Objective, probed: Sequence[int]) -> int:
    """The best point if it was measured; else the measured point nearest to it."""
    best = choose(seconds, usd, objective)
    assert best is not None, "without limits there is always a choice"
    if best in probed:
        return best
    at = np.array(probed)
    time_ratio, cost_ratio = seconds[at] / seconds[best], usd[at] / usd[best]
    if objective is Objective.KNEE:
        return int(at[np.argmin(np.maximum(time_ratio, cost_ratio))])
    return int(at[np.argmin(time_ratio if objective is Objective.FASTEST else cost_ratio)])


def by_batch(nodes: Floats, batch: Floats, level: float) -> list[int]:
    """The points with this number of nodes, smallest batch first."""
    at = np.flatnonzero(nodes == level)
    return [int(i) for i in at[np.argsort(batch[at], kind="stable")]]
