"""Expected improvement and expected saving of a probe.

Symbols   mu, sigma   mean and standard deviation of the log rate     k   the rate to beat
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from mlcd.core.configuration import Floats


def expected_improvement(mu: Floats, sigma: Floats, k: Floats | float) -> Floats:
    """E[(s - k)+] for a rate s with log s ~ N(mu, sigma^2): Black and Scholes' formula."""
    sigma = np.maximum(sigma, 1e-9)
    d2 = (mu - np.log(k)) / sigma
    improvement: Floats = np.exp(mu + sigma**2 / 2) * ndtr(d2 + sigma) - k * ndtr(d2)
    return np.maximum(improvement, 0.0)


def expected_saving(mu: Floats, sigma: Floats, k: Floats | float) -> Floats:
    """E[(k - T)+] for a time or cost T with log T ~ N(mu, sigma^2): the other side of the same formula."""
    sigma = np.maximum(sigma, 1e-9)
    d2 = (np.log(k) - mu) / sigma
    # Far above k the mean overflows while its weight vanishes: there is nothing to save.
    mean = np.exp(np.minimum(mu + sigma**2 / 2, 700.0))
    saving: Floats = k * ndtr(d2) - mean * ndtr(d2 - sigma)
    return np.maximum(saving, 0.0)
