"""Epochs over the batch as the gradient noise has them, and what two short starts add to that reading.

McCandlish et al., arXiv 1812.06162, equation (2.11): e = e_min (1 + B/Bn). Jobs follow it more or less exactly, so the
batch may count with another power: e = e_min (1 + (B/Bn)^a). Noise says Bn, nothing says a: it is 1 but for an error.
Two starts to one early level say what both made of it there, and are weighed with the reading (a Gaussian prior and one
measurement of a curved function, linearised until it stands still: an iterated extended Kalman filter's update).

Symbols   B, Bn  batch, noise scale in samples                   a      power of the batch; 1 by the law
          theta  (d, s, c): log Bn is d more than was read, and d + s more until the early level; c = log a
          P      covariance of theta before the starts           y, R   log of the measured ratio, and its variance
          f, J   that ratio by theta, and its derivatives
          scale  (nu + (y - f)^2 / (J P J' + R)) / (nu + 1) at theta = 0: all variances times it; nu = 4, as for steps
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats

SEED_ERROR = 0.04
"""Two runs that differ in nothing but their seed differ by so much, typically."""
POWER_ERROR = 0.2
"""In the log. Two real jobs had 1.0 within 0.1; they are two."""
EARLY_AND_LATE = 0.5
"""In the log: a noise scale that was read wrongly at the start is read so differently wrongly later. Along two real
jobs it was 0.24; a third was less kind."""
FARTHEST = 2.0
"""Standard errors that starts and noise may be apart; what is beyond is put down to the starts."""
PSEUDO_OBSERVATIONS = 4.0
MOST_SCALE = 4.0
"""Of variances: however starts and noise contradict each other, errors are no more than doubled."""
ROUNDS = 50
LONGEST = 0.5


@dataclass(frozen=True)
class Starts:
    """Two short starts, at a small and at a large batch, as far as both went."""

    batches: tuple[float, float]
    samples: tuple[float, float]
    """To the best level that both have shown."""
    sooner: tuple[float, float] = (1.0, 1.0)
    """So many times sooner it may have been there as well: nobody looked before the first look."""
    error: float = 0.0
    """The standard error of the log of their ratio, from where the looks lie."""
    noise_scale: float | None = None
    """Read until that level, along the run whose noise is known."""
    on_the_way: float = 0.0
    """How far along that run the level was: at its target there is no earlier and later."""


@dataclass(frozen=True)
class Shape:
    """How epochs depend on the batch, and how well that is known."""

    noise_scale: float
    power: float
    noise_error: float
    power_error: float
    together: float
    """Covariance of the two errors: starts tell what both make of a ratio, not which of them did."""


def log_epochs(batch: Floats | float, noise_scale: float, power: float) -> Floats:
    """But for a constant."""
    return np.asarray(np.log1p((batch / noise_scale) ** power), dtype=float)


def slopes(batch: Floats | float, noise_scale: float, power: float) -> tuple[Floats, Floats]:
    """Of `log_epochs`, by the log of the noise scale and by the log of the power."""
    drowned = 1 / (1 + (noise_scale / np.asarray(batch, float)) ** power)
    by_power: Floats = power * drowned * np.log(batch / noise_scale)
    return -power * drowned, by_power


def as_read(noise_scale: float, noise_error: float) -> Shape:
    """By the noise alone."""
    return Shape(noise_scale, 1.0, noise_error, POWER_ERROR, 0.0)


def with_starts(noise_scale: float, noise_error: float, starts: Starts) -> Shape:
    """By the noise, and by what two starts say of it: the more they contradict it, the less is known."""
    if starts.noise_scale is None:
        return as_read(noise_scale, noise_error)
    prior = np.diag([noise_error**2, EARLY_AND_LATE**2 * (1 - starts.on_the_way), POWER_ERROR**2])
    least, most = np.log(starts.samples[1] / starts.samples[0]) + np.log([1 / starts.sooner[1], starts.sooner[0]])
    by_noise, slope = _ratio(starts.batches, starts.noise_scale, 1.0)
    if least < by_noise < most:  # neither confirmed nor contradicted
        return as_read(noise_scale, noise_error)
    measured, variance = np.clip(by_noise, least, most), starts.error**2 + SEED_ERROR**2
    apart, expected = (measured - by_noise) ** 2, slope @ prior @ slope + variance
    variance += max(0.0, apart - FARTHEST**2 * expected)
    theta, slope = _weighed(starts, prior, float(measured), float(variance))
    scale = min((PSEUDO_OBSERVATIONS + apart / expected) / (PSEUDO_OBSERVATIONS + 1), MOST_SCALE)
    left = scale * _conditioned(prior, slope, variance)
    errors = np.sqrt(np.diag(left))
    found = (noise_scale * np.exp(theta[0]), np.exp(theta[2]), errors[0], errors[2], left[0, 2])
    return Shape(*(float(each) for each in found))


def _weighed(starts: Starts, prior: Floats, measured: float, variance: float) -> tuple[Floats, Floats]:
    """Theta by its prior and the measured ratio together, and the derivatives of the ratio there."""
    assert starts.noise_scale is not None
    theta = np.zeros(3)
    for _ in range(ROUNDS):
        foreseen, slope = _ratio(starts.batches, starts.noise_scale * np.exp(theta[0] + theta[1]), np.exp(theta[2]))
        off, spread = measured - foreseen + slope @ theta, slope @ prior @ slope + variance
        step = prior @ slope * off / spread - theta
        theta = theta + np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() < 1e-4:
            break
    return theta, slope


def _ratio(batches: tuple[float, float], noise_scale: float, power: float) -> tuple[float, Floats]:
    """The log of the ratio of samples at two batches, and its derivatives by theta."""
    at = np.array(batches)
    by_noise, by_power = (float(np.diff(each)[0]) for each in slopes(at, noise_scale, power))
    return float(np.diff(log_epochs(at, noise_scale, power))[0]), np.array([by_noise, by_noise, by_power])


def _conditioned(prior: Floats, slope: Floats, variance: float) -> Floats:
    """The covariance that is left once a function with these slopes was measured."""
    across = prior @ slope
    left: Floats = prior - np.outer(across, across) / (slope @ across + variance)
    return left
