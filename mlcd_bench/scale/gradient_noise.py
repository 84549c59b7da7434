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
"""How many times from the middle look of its run a look may lie: one must not decide an average."""
UNREAD = 1.0
"""Standard error of log Bn where one look is all there is: noise grows several times over along a run."""


def noise_scale(grad_sqr: Floats, grad_var: Floats, iterations: Floats, unit_batch: float) -> float:
    """Bn of a run: the ratios of its looks, averaged in the log, each for the iterations that it stands for.

    An estimate of |G|^2 can reach zero or pass below it: such a look counts as the noisiest of the others. Not a number
    where nothing can be read: the caller knows what to say.
    """
    logs, weights = _log_ratios(grad_sqr, grad_var, iterations)
    return float(unit_batch * np.exp(np.average(logs, weights=weights))) if len(logs) else float("nan")


def noise_scale_error(grad_sqr: Floats, grad_var: Floats, iterations: Floats) -> float:
    """The standard error of log Bn that comes from reading a noise that grows along the run at a few looks only."""
    logs, weights = _log_ratios(grad_sqr, grad_var, iterations)
    if len(logs) < 2:
        return UNREAD
    spread = np.sqrt(np.average((logs - np.average(logs, weights=weights)) ** 2, weights=weights))
    return float(spread / np.sqrt(len(logs)))


def _log_ratios(grad_sqr: Floats, grad_var: Floats, iterations: Floats) -> tuple[Floats, Floats]:
    """The log of sigma^2 / |G|^2 at each look that can be read, and its iterations; both empty if none can."""
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
    """Scavenger's gamma over K: from 1/K without noise to 1 where noise is everything."""
    drowned = np.asarray(noise_scale, float) / global_batch
    found: Floats = (1 / np.asarray(workers, float) + drowned) / (1 + drowned)
    return found
