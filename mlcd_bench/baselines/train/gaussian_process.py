"""A Gaussian process over configurations, for log rates.

Symbols   X    configurations as points, one row each, every column scaled to 0..1 (see `features`)
          y    log rate                      e    its standard error
          l_n  length scale along nodes      l_m  length scale along the specifications of a type
          v    variance of the process, in units of the variance of y

scikit-learn's regressor does the algebra. Its hyperparameters maximise the likelihood on a grid, under
the kernel v * Matern 5/2 (also CherryPick's choice). With few points the likelihood has no sharp peak and gradients
stop near their start; a grid is as good, and deterministic. The whole grid is one stack of matrices: one by one, the
likelihoods took nearly all of a search's time.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from mlcd.core.configuration import Floats, Space

LENGTHS_NODES = (0.25, 0.5, 1.0, 2.0)
LENGTHS_SPECS = (0.25, 0.5, 1.0, 2.0)
VARIANCES = (0.5, 1.0, 2.0)

TYPICAL_SCALE = 1.0
"""Standard deviation of log rates if it cannot be estimated: the rates of a job differ by several times."""


def features(space: Space) -> Floats:
    """Each configuration as a point: nodes, then published specifications of its type; logs, scaled to 0..1."""
    per_offer = np.array(
        [
            [
                np.log(offer.tflops),
                np.log(max(offer.memory_gb, 0.1)),
                np.log(max(offer.network_gbps, 0.01)),
                float(offer.accelerators > 0),
            ]
            for offer in space.offers
        ]
    )
    columns = np.column_stack([np.log(space.nodes), per_offer[space.offer_index]])
    low, high = columns.min(axis=0), columns.max(axis=0)
    scaled: Floats = (columns - low) / np.where(high > low, high - low, 1.0)
    return scaled


def posterior(
    x: Floats, y: Floats, error: Floats, at: Floats, along_nodes: float = TYPICAL_SCALE
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the log rate at each row of `at`, given y with its errors at x.

    `along_nodes`: the spread of log rates along nodes while only one node count was measured.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor  # slow to import, and few commands need it
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    centre, scale = float(y.mean()), float(y.std())
    if len(y) < 2 or scale < 1e-9:
        scale = TYPICAL_SCALE
    if np.ptp(x[:, 0]) == 0:  # types alone say nothing about the spread along nodes
        scale = max(scale, along_nodes)
    y = (y - centre) / scale
    noise = np.maximum(error / scale, 1e-4) ** 2
    variance, lengths = _most_likely(x, y, noise)
    kernel = ConstantKernel(variance) * Matern(lengths, nu=2.5)
    process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(x, y)
    mean, std = process.predict(at, return_std=True)
    return mean * scale + centre, std * scale


def _most_likely(x: Floats, y: Floats, noise: Floats) -> tuple[float, Floats]:
    """The variance and the length scales, of the grid, that make y most likely; `noise`: variances of y's errors."""
    grid = np.array(list(product(VARIANCES, LENGTHS_NODES, LENGTHS_SPECS)))
    variances, lengths = grid[:, 0], np.column_stack([grid[:, 1], *[grid[:, 2]] * (x.shape[1] - 1)])
    apart = (x[:, None, :] - x[None, :, :]) ** 2
    d = np.sqrt(5 * np.einsum("ijk,gk->gij", apart, lengths**-2.0))
    covariance = variances[:, None, None] * (1 + d + d**2 / 3) * np.exp(-d) + np.diag(noise)
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, np.broadcast_to(y[:, None], (len(grid), len(y), 1)))[..., 0]
    log_determinants = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    best = int(np.argmin((whitened**2).sum(axis=1) / 2 + log_determinants))
    return float(variances[best]), lengths[best]
