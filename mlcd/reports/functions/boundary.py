"""The Pareto boundary in brief: a dozen points from the fastest to the cheapest, with the knee among them.

A point is a `Planned` of one epoch of one trial: an allocation, what the epoch takes, and what it costs.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence

from mlcd.planners.functions.nouns import Allocation, Planned

MOST_POINTS = 12


def ordered(points: Sequence[Planned]) -> list[Planned]:
    """The fastest first."""
    return sorted(points, key=lambda p: (p.seconds, p.usd))


def knee(points: Sequence[Planned]) -> Planned | None:
    """The point farthest below the line between both ends, on log scales; None where there is nothing between them."""
    along = ordered(points)
    if len(along) < 3:
        return None
    (x0, y0), (x1, y1) = _logs(along[0]), _logs(along[-1])

    def below(point: Planned) -> float:
        x, y = _logs(point)
        return (x1 - x0) * (y0 - y) - (x0 - x) * (y1 - y0)

    found = max(along[1:-1], key=below)
    return found if below(found) > 0 else None


def brief(points: Sequence[Planned], most: int = MOST_POINTS) -> list[Planned]:
    """At most so many, evenly apart in the logarithm of their time; both ends and the knee are among them."""
    along = ordered(points)
    if len(along) <= most:
        return along
    bend = knee(along)
    kept = {0, len(along) - 1, *([along.index(bend)] if bend is not None else [])}
    times = [p.seconds for p in along]
    step = (times[-1] / times[0]) ** (1 / (most - 2))
    for i in range(1, most - 2):
        wanted = times[0] * step**i
        above = bisect(times, wanted)
        near = (above - 1, min(above, len(times) - 1))
        kept.add(near[0] if wanted - times[near[0]] < times[near[1]] - wanted else near[1])
    return [along[j] for j in sorted(kept)]


def marks(points: Sequence[Planned]) -> dict[Allocation, str]:
    """'fastest', 'knee' and 'cheapest', by their allocations."""
    along, bend = ordered(points), knee(points)
    found = {bend.allocation: "knee"} if bend is not None else {}
    if len(along) > 1:
        found |= {along[0].allocation: "fastest", along[-1].allocation: "cheapest"}
    return found


def _logs(point: Planned) -> tuple[float, float]:
    return math.log(point.seconds), math.log(max(point.usd, 1e-12))
