"""A Gaussian process over the points of a space, and the expected improvement of a trial.

Symbols   X, y   tried points and their values                         m(x)   prior mean
          l      length scale, the same along every column             k      Matern 5/2, of variance 1 after scaling
          mu, sigma   posterior mean and standard deviation            EI     E[(y - y_best)+]

scikit-learn's regressor does the algebra. The length scale maximises the likelihood on a grid: with few points
the likelihood has no sharp peak, and a grid is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from mlcd.core.configuration import Floats

LENGTHS = (0.2, 0.4, 0.8, 1.6)
NUGGET = 1e-4
"""Noise as a share of the variance: a trial's error, and numerical stability."""

Likelihood = Callable[..., float]


def posterior(x: Floats, residual: Floats, at: Floats, scale: float = 1.0) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the residual after the prior mean, at each row of `at`.

    `scale`: the spread of values while there are too few to estimate it.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor  # slow to import, and few commands need it
    from sklearn.gaussian_process.kernels import Matern

    spread = float(np.sqrt(np.mean(residual**2)))
    scale = spread if len(residual) > 1 and spread > 1e-9 else scale
    process = GaussianProcessRegressor(Matern(1.0, nu=2.5), alpha=NUGGET, optimizer=_on_grid)
    process.fit(x, residual / scale)
    mean, std = process.predict(at, return_std=True)
    return mean * scale, std * scale


def expected_improvement(mu: Floats, sigma: Floats, best: float) -> Floats:
    """EI for y ~ N(mu, sigma^2)."""
    sigma = np.maximum(sigma, 1e-12)
    z = (mu - best) / sigma
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    improvement: Floats = (mu - best) * ndtr(z) + sigma * density
    return np.maximum(improvement, 0.0)


def _on_grid(objective: Likelihood, initial: Floats, bounds: Floats) -> tuple[Floats, float]:
    """scikit-learn's optimiser interface: the log length of the smallest objective."""
    scores = [(objective(np.log([length]), eval_gradient=False), length) for length in LENGTHS]
    least, length = min(scores)
    return np.log([length]), float(least)
