"""Repeated timing: often enough for a median, within a limited time."""

from __future__ import annotations

from collections.abc import Callable

FEWEST, MOST = 5, 40
"""Counted passes of a point."""
ENOUGH_S = 0.15
"""Time limit of a point after the minimum number of passes."""


def timed(seconds_of_one: Callable[[], float]) -> tuple[float, ...]:
    """The seconds of several passes, after two warm-up passes."""
    seconds_of_one()
    expected_s = seconds_of_one()
    count = min(MOST, max(FEWEST, round(ENOUGH_S / max(expected_s, 1e-6))))
    return tuple(seconds_of_one() for _ in range(count))
