"""Holds a deployment: looks at its engine's own counts, and says when the caps are not held for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlcd.clouds.serving.histograms import Histogram, Histograms, histogram_of
from mlcd.core.clock import Clock
from mlcd.planners.serve.llm.cap_monitor import CapMonitor, Counts
from mlcd.planners.serve.nouns import Cap, Figure

EVERY_S = 60.0
"""Interval between two readings of the engine's histograms."""
ALIVE_EVERY_S = 1.0
"""Interval between two checks whether the engine is alive."""


@dataclass(frozen=True)
class CapsBroken:
    """Caps are broken for good. `rate`: requests a second that arrived meanwhile; None if not counted."""

    words: str
    rate: float | None


def watch_caps(
    caps: Sequence[Cap],
    read: Callable[[], Histograms | None],
    alive: Callable[[], bool],
    clock: Clock,
    until_s: float,
    every_s: float = EVERY_S,
) -> Iterator[CapsBroken]:
    """Read the engine's histograms at intervals until it ends or its time is over; yield whenever caps are broken.

    After each yield, counting starts again.
    """
    monitor, before, since_s = CapMonitor(tuple(caps)), read(), clock.elapsed_s()
    breaking_since_s, requests = since_s, 0
    while alive() and clock.elapsed_s() < until_s:
        clock.wait(min(ALIVE_EVERY_S, max(0.0, until_s - clock.elapsed_s())))
        if clock.elapsed_s() < since_s + every_s or (now := read()) is None:
            continue
        counted = _counted(caps, now, before)
        monitor, before, since_s = monitor.after(counted), now, clock.elapsed_s()
        requests += max((counts.total for counts in counted.values()), default=0)
        if not any(monitor.breaking.values()):
            breaking_since_s, requests = since_s, 0
        if monitor.broken:
            rate = requests / (since_s - breaking_since_s) if since_s > breaking_since_s else None
            yield CapsBroken(monitor.words(), rate)
            monitor, breaking_since_s, requests = CapMonitor(tuple(caps)), since_s, 0


def watchable_caps(caps: Sequence[Cap], found: Histograms | None) -> tuple[Cap, ...]:
    """The caps for which the engine has a histogram."""
    return tuple(cap for cap in caps if found is not None and histogram_of(cap, found) is not None)


def _counted(caps: Sequence[Cap], now: Histograms, before: Histograms | None) -> dict[Figure, Counts]:
    counts = dict[Figure, Counts]()
    for cap in caps:
        histogram = histogram_of(cap, now)
        if histogram is not None:
            earlier: Histogram | None = histogram_of(cap, before) if before is not None else None
            counts[cap.figure] = histogram.since(earlier).counts(cap.at_most_s)
    return counts
