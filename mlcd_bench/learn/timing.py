"""How often something is timed: often enough for a median, and not for long."""

from __future__ import annotations

from collections.abc import Callable

FEWEST, MOST = 5, 40
"""Passes that count, at a point."""
ENOUGH_S = 0.15
"""Between those, a point takes so long."""


def timed(seconds_of_one: Callable[[], float]) -> tuple[float, ...]:
    """The seconds of some passes, after two that do not count."""
    seconds_of_one()
    expected_s = seconds_of_one()
    count = min(MOST, max(FEWEST, round(ENOUGH_S / max(expected_s, 1e-6))))
    return tuple(seconds_of_one() for _ in range(count))
