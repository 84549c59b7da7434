"""Forecast how many epochs a training run takes, from the estimate made before training and the losses so far.

The forecast is a posterior density of x = log N, N the epochs to the target: the prior (the estimate) times the
likelihood of the losses. N is more than the epochs done, which did not reach the target. Each of the two may be
completely wrong, so each is a mixture with an outlier part. A confident but wrong one then cannot overrule the other:

    estimate   (1 - OUTLIER_SHARE) normal(x - log estimate; SAMPLING_ERROR)
               + OUTLIER_SHARE normal(x - log estimate; OUTLIER_ERROR)
    losses     (1 - OUTLIER_SHARE) density of the draws of the fit that reach the target, at e^x epochs
               + the rest, uniform in x

A draw of the fit that never reaches the target says nothing about N: it counts as uniform in x, too. Before a cliff (a
cut of the learning rate) or in a slow start all draws are of this kind, and the estimate alone decides. Counting them
as 'very many epochs' was worse than the estimate alone on real curves of networks: docs/methods/ce-scaling.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, log, pi, sqrt

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Target
from mlcd.planners.modeling.loss_curve import fit

SAMPLING_ERROR = 0.4
"""Standard deviation of the log of an estimate from a sample of the data (CE-scaling, figure 4a: up to 40 %)."""
OUTLIER_ERROR = 1.2
"""The same of an outlier: three times as much."""
OUTLIER_SHARE = 0.1
"""How often an estimate is an outlier, and how often losses follow none of the fitted curves. Forecasts of real curves
are equally good with 0.02 to 0.3."""
LEAST_WIDTH = 0.03, 2.0
"""The least standard deviation of a draw, in the log of the epochs and in epochs: near the target, noise decides in
which epoch the loss is first below it."""
LEAST_CHANCE = 0.02
"""Epochs with a smaller chance of being needed are not planned."""
GRID_POINTS, QUANTILES = 400, 200
"""At how many x the density is computed, and by how many quantiles it is represented."""


@dataclass(frozen=True, slots=True)
class EpochForecast:
    """The number of epochs from the beginning to the target, and the loss that the curve tends to.

    `quantiles` of that number, rising and equally likely. `fitted`: whether there are enough losses to fit a curve.
    `in_sight`: whether the fitted curve reaches the target at all.
    """

    epochs: float
    quantiles: tuple[float, ...]
    floor: float = -inf
    fitted: bool = False
    in_sight: bool = True

    @property
    def tendency(self) -> str:
        """What the losses tend to, in words, for a target that is not in sight."""
        return f"the loss tends to {self.floor:.4g}" if isfinite(self.floor) else "the loss falls too slowly"

    def survival(self, done: int) -> Floats:
        """S(1), S(2) ...: the chance that each epoch after `done` is needed, given that the target was not reached."""
        left = np.array([epochs - done for epochs in self.quantiles if epochs > done + 0.5] or [1.0])
        chances = 1 - np.searchsorted(left, np.arange(int(left[-1] + 0.5)) + 0.5, side="right") / len(left)
        return chances[: max(1, int((chances >= LEAST_CHANCE).sum()))]


def known_epochs(epochs: float) -> EpochForecast:
    """The forecast of a known number of epochs."""
    return EpochForecast(epochs, (epochs,))


@lru_cache(maxsize=4_096)
def forecast_from_estimate(estimate: float, most: float, done: int = 0) -> EpochForecast:
    """From the estimate alone."""
    return EpochForecast(min(estimate, most), epoch_quantiles(min(estimate, most), most, done))


@lru_cache(maxsize=4_096)  # called for every past epoch after every epoch
def forecast_from_losses(losses: tuple[float, ...], target: Target, estimate: float, most: float) -> EpochForecast:
    """From the estimate and these losses. A metric that must rise is negated."""
    sign = -1.0 if target.at_least else 1.0
    curve = fit([sign * loss for loss in losses])
    if curve is None:
        return forecast_from_estimate(estimate, most, len(losses))
    quantiles = epoch_quantiles(min(estimate, most), most, len(losses), curve.draws_to(sign * target.value))
    epochs = min(max(quantiles[QUANTILES // 2], len(losses) + 1.0), most)
    in_sight = isfinite(curve.epochs_to(sign * target.value).expected)
    floor = curve.floor if curve.floor > sign * target.value else -inf  # a floor below the target: only slow
    return EpochForecast(epochs, quantiles, sign * floor, True, in_sight)


def epochs_to_target(losses: tuple[float, ...], target: Target) -> float:
    """Further epochs to the target by these losses alone, without a maximum; infinite if no curve can be fitted."""
    sign = -1.0 if target.at_least else 1.0
    curve = fit([sign * loss for loss in losses])
    return inf if curve is None else curve.epochs_to(sign * target.value).expected - len(losses)


def epoch_quantiles(
    estimate: float, most: float, done: int, draws_to_target: Floats | None = None
) -> tuple[float, ...]:
    """Equally likely numbers of epochs, continuous: epoch n is the last one from n - 0.5 to n + 0.5."""
    x = np.linspace(log(done + 0.5), log(max(most, done + 1) + 0.5), GRID_POINTS)
    off = x - log(estimate)
    density = (1 - OUTLIER_SHARE) * _normal(off, SAMPLING_ERROR) + OUTLIER_SHARE * _normal(off, OUTLIER_ERROR)
    if draws_to_target is not None:
        density *= _likelihood(x, draws_to_target[draws_to_target <= most], len(draws_to_target))
    share = np.cumsum(density) - density / 2
    quantiles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return tuple(np.exp(np.interp(quantiles * density.sum(), share, x)).tolist())


def _likelihood(x: Floats, reached: Floats, draws: int) -> Floats:
    """The likelihood of the losses if training takes e^x epochs, up to a factor. `reached`: the draws that reach it."""
    weight = (1 - OUTLIER_SHARE) / draws
    densities = _normal(x[:, None] - np.log(reached), np.maximum(LEAST_WIDTH[0], LEAST_WIDTH[1] / reached))
    likelihood: Floats = weight * densities.sum(axis=1) + (1 - weight * len(reached)) / (x[-1] - x[0])
    return likelihood


def _normal(off: Floats, width: Floats | float) -> Floats:
    return np.exp(-((off / width) ** 2) / 2) / (width * sqrt(2 * pi))
