"""What the noise of gradients says about batch sizes.

McCandlish et al., arXiv 1812.06162 (the noise scale); Johnson et al., AdaScale, 2020 (how it is recorded);
Tyagi and Sharma, Scavenger, 2023, equation (2) (gamma).

Symbols   |G|^2   squared norm of the true gradient       sigma^2  variance of a gradient of `unit_batch` samples
          Bn      noise scale in samples: unit_batch x sigma^2 / |G|^2; about where larger batches stop paying
          gamma   mean squared norm of the workers' gradients over that of their mean; normalised, over K
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Floats

FARTHEST = 100.0
"""Evaluations that differ from the run's median by a larger factor are clipped, so that none dominates the mean."""
UNREAD = 1.0
"""Standard error of log Bn from a single evaluation: noise grows several times along a run."""


def noise_scale(grad_sqr: Floats, grad_var: Floats, iterations: Floats, unit_batch: float) -> float:
    """Bn of a run: the log mean of the ratios at its evaluations, weighted by their iterations.

    An estimate of |G|^2 can be zero or negative; such an evaluation counts as the noisiest of the others. NaN if no
    evaluation can be used.
    """
    logs, weights = _log_ratios(grad_sqr, grad_var, iterations)
    return float(unit_batch * np.exp(np.average(logs, weights=weights))) if len(logs) else float("nan")


def noise_scale_error(grad_sqr: Floats, grad_var: Floats, iterations: Floats) -> float:
    """The standard error of log Bn from few evaluations of a noise that grows along the run."""
    logs, weights = _log_ratios(grad_sqr, grad_var, iterations)
    if len(logs) < 2:
        return UNREAD
    spread = np.sqrt(np.average((logs - np.average(logs, weights=weights)) ** 2, weights=weights))
    return float(spread / np.sqrt(len(logs)))


def _log_ratios(grad_sqr: Floats, grad_var: Floats, iterations: Floats) -> tuple[Floats, Floats]:
    """The log of sigma^2 / |G|^2 and the iterations of each usable evaluation; empty if there is none."""
    seen = np.isfinite(grad_sqr) & np.isfinite(grad_var) & (np.asarray(iterations) > 0)
    sqr, var, weights = grad_sqr[seen], grad_var[seen], np.asarray(iterations)[seen]
    plain = (sqr > 0) & (var > 0)
    if not plain.any():
        return np.array([]), np.array([])
    ratio = np.log(var[plain]) - np.log(sqr[plain])
    logs = np.where(var > 0, ratio.max(), ratio.min())
    logs[plain] = ratio
    middle = np.median(ratio)
    return np.clip(logs, middle - np.log(FARTHEST), middle + np.log(FARTHEST)), weights


def normalised_noise(noise_scale: Floats, workers: Floats, global_batch: Floats) -> Floats:
    """Scavenger's gamma over K: from 1/K without noise to 1 with noise alone."""
    drowned = np.asarray(noise_scale, float) / global_batch
    found: Floats = (1 / np.asarray(workers, float) + drowned) / (1 + drowned)
    return found
