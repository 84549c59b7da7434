"""Quantiles of latencies with intervals that hold whatever the distribution: order statistics.

Of n requests that do not hang together, B of them below the q-quantile x_q is binomial, so that X_(k) >= x_q but for
P(B >= k). Requests of one moment do hang together: a batch is answered at once, a stall holds up all that wait. By how
much shows in how the share above the quantile differs between windows (Kish's design effect); n is divided by it.

Symbols   X_(k)    the k-th smallest latency         D    design effect, 1 where requests do not hang together
          m        windows of requests               a    the chance that an end is wrong, of Z normal standard errors
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mlcd.core.configuration import Floats
from mlcd.core.measurement import Z

WRONG = float(ndtr(-Z))
"""The chance a that one end of an interval is on the wrong side of the truth."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure as measured, between the ends that it hardly ever passes."""

    low: float
    at: float
    high: float

    def widened(self, rel_error: float) -> Interval:
        """With ends at least Z such errors away."""
        away = math.exp(Z * rel_error)
        return Interval(min(self.low, self.at / away), self.at, max(self.high, self.at * away))

    def clear_of(self, limit: float) -> bool:
        """Whether a limit is not between the ends."""
        return self.high <= limit or self.low > limit


def quantile(windows: Sequence[Floats], q: float) -> Interval:
    """Of all requests of these windows; an end for which there are too few requests is 0 or infinite."""
    from scipy import stats  # slow to import, and few commands come here

    ordered = np.sort(np.concatenate(windows))
    n = len(ordered)
    at = float(ordered[max(0, math.ceil(n * q) - 1)])
    alone = max(1, int(n / _design_effect(windows, at)))
    below, above = int(stats.binom.ppf(WRONG, alone, q)), int(stats.binom.isf(WRONG, alone, q)) + 1
    low = float(ordered[math.floor(below / alone * n) - 1]) if below >= 1 else 0.0
    high = float(ordered[math.ceil(above / alone * n) - 1]) if above <= alone else math.inf
    return Interval(min(low, at), at, max(high, at))


def _design_effect(windows: Sequence[Floats], threshold: float) -> float:
    """How many times more the share above a threshold varies than that of requests on their own would."""
    sizes = np.array([len(window) for window in windows], dtype=float)
    above = np.array([np.count_nonzero(window > threshold) for window in windows], dtype=float)
    n, m = float(sizes.sum()), len(windows)
    share = float(above.sum()) / n
    if m < 2 or share == 0:
        return 1.0
    between = m / (m - 1) * float(((above - share * sizes) ** 2).sum())
    return max(1.0, between / (n * share * (1 - share)))
