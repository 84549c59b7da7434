"""How many epochs a training run may take: what was estimated before, and what its losses say since.

Both are estimates with an error, and what both say is their product, as a density of x = log N, N the epochs to the
target. N is beyond the epochs done, which did not reach it. Either may be wrong altogether, so neither rules out what
it does not foresee, and where they contradict each other, the one that is surer of itself does not win by that alone:

    estimate   (1 - MISLED) bell(x - log estimate; SAMPLING_ERROR) + MISLED bell(x - log estimate; FAR_OFF)
    losses     (1 - MISLED) share of the draws of the fit that come to e^x epochs, + the others spread over all x

A draw of the fit that never gets there does not say how long it takes: it counts as spread over all x, too. Before a
cliff (a learning rate that is cut) or in a slow start all draws are of this kind, and the estimate stands. A form that
took them for 'very many' was worse than the estimate alone, on real curves of networks: docs/methods/ce-scaling.md.
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
"""Of an estimate from a sample of the data, as CE-scaling found it (figure 4a: up to 40 %)."""
FAR_OFF = 1.2
"""Of an estimate that is wrong altogether: three times as much."""
MISLED = 0.1
"""How often an estimate is, and how often losses follow none of the curves that are fitted. From 0.02 to 0.3, forecasts
of real curves are as good."""
SUREST = 0.03, 2.0
"""No draw is surer than this: of the log of the epochs, and in epochs. Noise decides in which epoch a loss that is
close to its target is first below it."""
UNLIKELY = 0.02
"""Epochs that are needed less probably than this are not planned."""
PLACES, CASES = 400, 200
"""Where the density is computed; and how many numbers of epochs, each as likely as the others, stand for it."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Epochs from the beginning to the target, and the loss that the curve tends to.

    `fitted`: whether the losses say anything yet. `in_sight`: whether the curve gets there at all. `cases`: numbers of
    epochs that it may take, rising, each as likely as the others.
    """

    epochs: float
    cases: tuple[float, ...]
    floor: float = -inf
    fitted: bool = False
    in_sight: bool = True

    @property
    def tendency(self) -> str:
        """In words, for a target that is not in sight."""
        return f"the loss tends to {self.floor:.4g}" if isfinite(self.floor) else "the loss falls too slowly"

    def chances(self, done: int) -> Floats:
        """S(1), S(2) ...: how likely each epoch after those done is still needed, if none of those was the last."""
        ahead = np.array([case - done for case in self.cases if case > done + 0.5] or [1.0])
        found = 1 - np.searchsorted(ahead, np.arange(int(ahead[-1] + 0.5)) + 0.5, side="right") / len(ahead)
        return found[: max(1, int((found >= UNLIKELY).sum()))]


def certain(epochs: float) -> Outlook:
    """It takes these epochs."""
    return Outlook(epochs, (epochs,))


@lru_cache(maxsize=4_096)
def before(estimate: float, most: float, done: int = 0) -> Outlook:
    """From the estimate alone."""
    return Outlook(min(estimate, most), spread_over(min(estimate, most), most, done))


@lru_cache(maxsize=4_096)  # it is asked again for every epoch, after every epoch; the answer is the same
def after(losses: tuple[float, ...], target: Target, estimate: float, most: float) -> Outlook:
    """From the estimate and these losses. A metric that is to rise is turned round."""
    sign = -1.0 if target.at_least else 1.0
    curve = fit([sign * loss for loss in losses])
    if curve is None:
        return before(estimate, most, len(losses))
    cases = spread_over(min(estimate, most), most, len(losses), curve.draws_to(sign * target.value))
    epochs = min(max(cases[CASES // 2], len(losses) + 1.0), most)
    in_sight = isfinite(curve.epochs_to(sign * target.value).expected)
    floor = curve.floor if curve.floor > sign * target.value else -inf  # what it stays above; or it is only slow
    return Outlook(epochs, cases, sign * floor, True, in_sight)


def still_missing(losses: tuple[float, ...], target: Target) -> float:
    """Epochs from here to the target by these losses alone, however many there may be; inf where they do not tell."""
    sign = -1.0 if target.at_least else 1.0
    curve = fit([sign * loss for loss in losses])
    return inf if curve is None else curve.epochs_to(sign * target.value).expected - len(losses)


def spread_over(estimate: float, most: float, done: int, draws_to_target: Floats | None = None) -> tuple[float, ...]:
    """Numbers of epochs, each as likely as the others; the last one is epoch n where this is within a half of n."""
    x = np.linspace(log(done + 0.5), log(max(most, done + 1) + 0.5), PLACES)
    off = x - log(estimate)
    density = (1 - MISLED) * _bell(off, SAMPLING_ERROR) + MISLED * _bell(off, FAR_OFF)
    if draws_to_target is not None:
        density *= _likelihood(x, draws_to_target[draws_to_target <= most], len(draws_to_target))
    share = np.cumsum(density) - density / 2
    quantiles = (np.arange(CASES) + 0.5) / CASES
    return tuple(np.exp(np.interp(quantiles * density.sum(), share, x)).tolist())


def _likelihood(x: Floats, reached: Floats, draws: int) -> Floats:
    """How likely the losses are if it takes e^x epochs, up to a factor. `reached`: the draws that get there at all."""
    trusted = (1 - MISLED) / draws
    bells = _bell(x[:, None] - np.log(reached), np.maximum(SUREST[0], SUREST[1] / reached))
    likelihood: Floats = trusted * bells.sum(axis=1) + (1 - trusted * len(reached)) / (x[-1] - x[0])
    return likelihood


def _bell(off: Floats, width: Floats | float) -> Floats:
    return np.exp(-((off / width) ** 2) / 2) / (width * sqrt(2 * pi))
