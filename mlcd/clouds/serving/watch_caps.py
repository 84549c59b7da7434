"""Holds a deployment: looks at its engine's own counts, and says when the caps are not held for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlcd.clouds.serving.histograms import Histogram, Histograms, histogram_of
from mlcd.core.clock import Clock
from mlcd.planners.serve.llm.cap_monitor import CapMonitor, Counts
from mlcd.planners.serve.nouns import Cap, Figure

EVERY_S = 60.0
"""Between two looks."""
ASKED_EVERY_S = 1.0
"""Between two questions whether the engine is alive."""


@dataclass(frozen=True)
class CapsBroken:
    """Caps are not held for good. `rate`: requests a second that came meanwhile; None if nobody counts them."""

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
    """Look every now and then until the engine is gone or its time is over; each time that caps are not held, say so.

    Whoever goes on after that starts to count anew.
    """
    held, before, since_s = CapMonitor(tuple(caps)), read(), clock.elapsed_s()
    row_s, row_requests = since_s, 0
    while alive() and clock.elapsed_s() < until_s:
        clock.wait(min(ASKED_EVERY_S, max(0.0, until_s - clock.elapsed_s())))
        if clock.elapsed_s() < since_s + every_s or (now := read()) is None:
            continue
        seen = _counted(caps, now, before)
        held, before, since_s = held.after(seen), now, clock.elapsed_s()
        row_requests += max((counts.total for counts in seen.values()), default=0)
        if not any(held.breaking.values()):
            row_s, row_requests = since_s, 0
        if held.broken:
            rate = row_requests / (since_s - row_s) if since_s > row_s else None
            yield CapsBroken(held.words(), rate)
            held, row_s, row_requests = CapMonitor(tuple(caps)), since_s, 0


def watchable_caps(caps: Sequence[Cap], found: Histograms | None) -> tuple[Cap, ...]:
    """The caps that the engine's counts tell of."""
    return tuple(cap for cap in caps if found is not None and histogram_of(cap, found) is not None)


def _counted(caps: Sequence[Cap], now: Histograms, before: Histograms | None) -> dict[Figure, Counts]:
    counts = dict[Figure, Counts]()
    for cap in caps:
        histogram = histogram_of(cap, now)
        if histogram is not None:
            earlier: Histogram | None = histogram_of(cap, before) if before is not None else None
            counts[cap.figure] = histogram.since(earlier).counts(cap.at_most_s)
    return counts
