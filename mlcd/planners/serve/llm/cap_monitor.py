"""Detects when a running deployment breaks its caps for good, from its engine's counts, without alarms at short bursts.

A cap on a p95 allows 5 % of the requests above it. A window of requests breaks it if significantly more were above it:
a one-sided binomial test at 1 %. Requests of one window are not independent (a stall delays all that wait), so a cap
counts as broken for good only after three such windows in a row; at exactly the allowed share that happens once in a
million windows. A window is the time between two readings, extended until it has at least thirty requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scipy.special import bdtrc

from mlcd.planners.serve.llm.capacity import share_within
from mlcd.planners.serve.nouns import Cap, Figure

SIGNIFICANCE = 0.01
"""Probability that a window breaks a cap by chance if exactly the allowed share is above it."""
IN_A_ROW = 3
FEWEST = 30
"""Least requests in a window: with fewer, the test has little power."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counted requests, and how many of them were certainly above a cap."""

    above: int = 0
    total: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.above + other.above, self.total + other.total)

    def breaks(self, cap: Cap) -> bool:
        """Whether significantly more than the allowed share were above the cap."""
        allowed = 1 - share_within(cap.figure)
        return float(bdtrc(self.above - 1, self.total, allowed)) <= SIGNIFICANCE


@dataclass(frozen=True)
class CapMonitor:
    """The state of monitoring. `partial`: the unfinished window of each capped figure. `breaking`: the latest
    consecutive windows that broke each figure's cap, the newest last.
    """

    caps: tuple[Cap, ...]
    partial: Mapping[Figure, Counts] = field(default_factory=dict)
    breaking: Mapping[Figure, tuple[Counts, ...]] = field(default_factory=dict)

    def after(self, counts: Mapping[Figure, Counts]) -> CapMonitor:
        """The state after the counts since the last reading, by figure."""
        partial, breaking = dict(self.partial), dict(self.breaking)
        for cap in self.caps:
            window = partial.get(cap.figure, Counts()) + counts.get(cap.figure, Counts())
            full = window.total >= FEWEST
            partial[cap.figure] = Counts() if full else window
            if full:
                breaking[cap.figure] = (*breaking.get(cap.figure, ()), window) if window.breaks(cap) else ()
        return replace(self, partial=partial, breaking=breaking)

    @property
    def broken(self) -> tuple[Cap, ...]:
        """The caps that are broken for good."""
        return tuple(cap for cap in self.caps if len(self.breaking.get(cap.figure, ())) >= IN_A_ROW)

    def words(self) -> str:
        """'ttft_p95 <= 500 ms: 61 of 300 requests were above it (5 % allowed)'."""
        parts = []
        for cap in self.broken:
            counts = sum(self.breaking[cap.figure], Counts())
            allowed = 100 * (1 - share_within(cap.figure))
            parts.append(
                f"{cap}: {counts.above:,} of {counts.total:,} requests were above it ({allowed:.0f} % allowed)"
            )
        return "; ".join(parts)
