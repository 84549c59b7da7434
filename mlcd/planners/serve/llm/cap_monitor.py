"""Whether a deployment still keeps its caps, from what its engine counts: a rule that does not cry at every burst.

A cap on a p95 allows 5 % of the requests above it. A window of requests breaks it if more were above than chance
explains: a one-sided binomial test at 1 %. Requests of one window are not independent (a stall delays all that wait),
so a cap counts as not held for good only after three such windows in a row; at exactly the allowed share that is once
in a million windows. A window is what was counted between two looks, and as many more as it takes to have thirty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scipy.special import bdtrc

from mlcd.planners.serve.llm.capacity import share_within
from mlcd.planners.serve.nouns import Cap, Figure

BY_CHANCE = 0.01
"""Probability that a window breaks a cap whose share is exactly as allowed."""
IN_A_ROW = 3
FEWEST = 30
"""Requests of a window: of fewer, hardly any number is too many."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests that were counted, and those of them that were surely above a cap."""

    above: int = 0
    total: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.above + other.above, self.total + other.total)

    def breaks(self, cap: Cap) -> bool:
        """Whether more were above the cap than chance explains."""
        allowed = 1 - share_within(cap.figure)
        return float(bdtrc(self.above - 1, self.total, allowed)) <= BY_CHANCE


@dataclass(frozen=True)
class CapMonitor:
    """What has been seen so far. `row`: the windows in a row that broke each figure's cap, the newest last."""

    caps: tuple[Cap, ...]
    begun: Mapping[Figure, Counts] = field(default_factory=dict)
    row: Mapping[Figure, tuple[Counts, ...]] = field(default_factory=dict)

    def after(self, seen: Mapping[Figure, Counts]) -> CapMonitor:
        """With what was counted since the last look, by the figure of each cap."""
        begun, row = dict(self.begun), dict(self.row)
        for cap in self.caps:
            window = begun.get(cap.figure, Counts()) + seen.get(cap.figure, Counts())
            full = window.total >= FEWEST
            begun[cap.figure] = Counts() if full else window
            if full:
                row[cap.figure] = (*row.get(cap.figure, ()), window) if window.breaks(cap) else ()
        return replace(self, begun=begun, row=row)

    @property
    def broken(self) -> tuple[Cap, ...]:
        """The caps that are not held for good."""
        return tuple(cap for cap in self.caps if len(self.row.get(cap.figure, ())) >= IN_A_ROW)

    def words(self) -> str:
        """'ttft_p95 <= 500 ms: 61 of 300 requests were above it, 5 % may be'."""
        parts = []
        for cap in self.broken:
            counts = sum(self.row[cap.figure], Counts())
            allowed = 100 * (1 - share_within(cap.figure))
            parts.append(f"{cap}: {counts.above:,} of {counts.total:,} requests were above it, {allowed:.0f} % may be")
        return "; ".join(parts)
