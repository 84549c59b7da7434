"""Quantiles of latencies with distribution-free confidence intervals, from order statistics.

Of n independent requests, the number B below the q-quantile x_q is binomial, so X_(k) >= x_q with probability
1 - P(B >= k). Requests at the same moment are correlated: a batch is answered at once, a stall delays all that wait.
The variance of the share above the quantile between windows shows by how much (Kish's design effect); n is divided by
it.

Symbols   X_(k)    the k-th smallest latency         D    design effect, 1 for independent requests
          m        windows of requests               a    error probability of one end: that of Z normal standard errors
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
"""The error probability a of one end of an interval: a one-sided Z-sigma bound."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured figure with its confidence interval."""

    low: float
    at: float
    high: float

    def widened(self, rel_error: float) -> Interval:
        """With ends at least Z relative errors away."""
        away = math.exp(Z * rel_error)
        return Interval(min(self.low, self.at / away), self.at, max(self.high, self.at * away))

    def clear_of(self, limit: float) -> bool:
        """Whether a limit is outside of the interval."""
        return self.high <= limit or self.low > limit


def quantile(windows: Sequence[Floats], q: float) -> Interval:
    """The quantile of all requests of these windows; with too few requests, an end is 0 or infinite."""
    from scipy import stats  # slow to import, and rarely needed

    ordered = np.sort(np.concatenate(windows))
    n = len(ordered)
    at = float(ordered[max(0, math.ceil(n * q) - 1)])
    effective = max(1, int(n / _design_effect(windows, at)))
    below, above = int(stats.binom.ppf(WRONG, effective, q)), int(stats.binom.isf(WRONG, effective, q)) + 1
    low = float(ordered[math.floor(below / effective * n) - 1]) if below >= 1 else 0.0
    high = float(ordered[math.ceil(above / effective * n) - 1]) if above <= effective else math.inf
    return Interval(min(low, at), at, max(high, at))


def _design_effect(windows: Sequence[Floats], threshold: float) -> float:
    """The variance of the share above a threshold, relative to that of independent requests."""
    sizes = np.array([len(window) for window in windows], dtype=float)
    above = np.array([np.count_nonzero(window > threshold) for window in windows], dtype=float)
    n, m = float(sizes.sum()), len(windows)
    share = float(above.sum()) / n
    if m < 2 or share == 0:
        return 1.0
    between = m / (m - 1) * float(((above - share * sizes) ** 2).sum())
    return max(1.0, between / (n * share * (1 - share)))
