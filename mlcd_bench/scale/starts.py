"""Epochs over the batch from an earlier run to the target, its gradient noise, and two short starts.

Noise alone says what `modeling/performance.py` makes of it. Two starts to one early level say what both
made of it there, and are weighed with the reading (a Gaussian prior and one measurement of a curved function,
linearised until it stands still: an iterated extended Kalman filter's update). Where the smaller batch clearly takes
more samples, epochs fall with the batch.

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
from mlcd.planners.modeling.performance import (
    NOISE_SCALE_ERROR,
    POWER_ERROR,
    SEED_ERROR,
    Direction,
    StatisticalEfficiency,
    log_epochs,
    run_error,
    slopes,
)

METRIC_ERROR = 0.005
"""Relative difference of the metric between seeds; on a flat curve this is a long time."""
FALLING_ERROR = 0.5
"""Standard error of the falling share, if only two short starts are known."""
CLEARLY = 1.1
"""Epochs are assumed to fall only if the samples to an early level differ by this factor."""
MOST_SHARE = 0.95
EARLY_AND_LATE = 0.5
"""Standard deviation of the change of the log noise scale's error along a run: 0.24 for two real jobs, more for a
third."""
FARTHEST = 2.0
"""The most standard errors between starts and noise; any excess is attributed to the starts."""
PSEUDO_OBSERVATIONS = 4.0
MOST_SCALE = 4.0
"""The largest factor on variances: contradictions of starts and noise at most double the errors."""
ROUNDS = 50
LONGEST = 0.5


@dataclass(frozen=True)
class Starts:
    """Two short starts, at a small and at a large batch, up to the shorter one's end."""

    batches: tuple[float, float]
    samples: tuple[float, float]
    """Samples to the best level that both reached."""
    sooner: tuple[float, float] = (1.0, 1.0)
    """It may have been reached earlier by this factor, since there is no evaluation before the first."""
    error: float = 0.0
    """The standard error of the log of their ratio, from the distances of the evaluations."""
    noise_scale: float | None = None
    """The noise scale measured until that level, along the reference run."""
    on_the_way: float = 0.0
    """How far along that run the level was, as a share of the way to its target."""


@dataclass(frozen=True)
class Shape:
    """How epochs depend on the batch, and how well that is known."""

    noise_scale: float
    power: float
    noise_error: float
    power_error: float
    together: float
    """Covariance of the two errors: starts determine only their joint effect on a ratio."""


def from_noise(
    reference_batch: float,
    reference_epochs: float | None,
    noise_scale: float,
    looks: float = np.inf,
    flatness: float = 0.0,
    noise_error: float = 0.0,
    starts: Starts | None = None,
) -> StatisticalEfficiency:
    """From one run and its noise.

    `looks`: how often the metric was evaluated before the target was reached, which limits the precision of e_ref.
    `flatness`: how much earlier (in the log) a metric was reached that is worse by METRIC_ERROR.
    `noise_error`: standard error of the log of `noise_scale`, from how it was measured along that run.
    `starts`: at the smallest and the largest batch; if the smallest clearly takes more samples, epochs fall.
    """
    error, noise_error = run_error(looks, flatness), float(np.hypot(NOISE_SCALE_ERROR, noise_error))
    if starts is None:
        shape, reason = as_read(noise_scale, noise_error), "no early level at two batches was seen"
    else:
        times = starts.samples[0] / starts.samples[1]
        if times > CLEARLY * np.exp(2 * starts.error):
            return StatisticalEfficiency(
                Direction.FALLING, reference_batch, reference_epochs, noise_scale,
                _falling_share(starts.batches, starts.samples, reference_batch), FALLING_ERROR, error,
                f"epochs fall with the batch: the smallest batch took {times:.2f} times the samples to an early level",
            )  # fmt: skip
        shape, reason = with_starts(noise_scale, noise_error, starts), "an early level confirms the direction"
        if times > CLEARLY:
            reason = "too few evaluations at an early level to tell otherwise"
    return StatisticalEfficiency(
        Direction.RISING, reference_batch, reference_epochs, shape.noise_scale, 0.0, shape.noise_error, error,
        f"epochs rise with the batch: noise scale {shape.noise_scale:,.0f}; {reason}",
        shape.power, shape.power_error, shape.together,
    )  # fmt: skip


def as_read(noise_scale: float, noise_error: float) -> Shape:
    """From the noise alone."""
    return Shape(noise_scale, 1.0, noise_error, POWER_ERROR, 0.0)


def with_starts(noise_scale: float, noise_error: float, starts: Starts) -> Shape:
    """From the noise and two starts: the more they contradict each other, the larger the errors."""
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
    """The posterior of theta given the measured ratio, and the derivatives of the ratio there."""
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
    """The covariance after a measurement of a function with these slopes."""
    across = prior @ slope
    left: Floats = prior - np.outer(across, across) / (slope @ across + variance)
    return left


def _falling_share(batches: tuple[float, float], taken: tuple[float, float], reference: float) -> float:
    """W at the reference batch such that both ends' ratio is met; less than all, so that epochs stay positive."""
    small, large = (np.sqrt(reference / batch) - 1 for batch in batches)
    ratio = taken[0] / taken[1]
    steepest = small - ratio * large  # ratio = (1 + w small) / (1 + w large)
    share = (ratio - 1) / steepest if steepest > 0 else MOST_SHARE
    return float(np.clip(share, 0.0, MOST_SHARE))
