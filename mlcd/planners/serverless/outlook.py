"""How many epochs a training run may take: what was estimated before, and what its losses say since.

Both are estimates with an error, and what both say is their product, as a density of x = log N, N the epochs to the
target. N is beyond the epochs done, which did not reach it.

    estimate   exp(-(x - log estimate)^2 / 2 s^2)                            s = SAMPLING_ERROR
    losses     exp(-(x - log told)^2 / 2 b^2) below `told`, the epochs that the fit expects; with a, not b, above it
    b, a       from the lower and the upper end of the fit's interval. Early, the upper one is open: the fit knows that
               it takes some epochs, not how many more, and above `told` only the estimate counts (a = inf)

One width for both sides would draw the estimate down to `told`, which is too low as long as the fit is unsure: on the
curves of `mlcd bench serverless` the middle was 0.87 of the truth after a quarter of a run, and is 0.92; after half,
0.90 and 0.96.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, log
from statistics import NormalDist

import numpy as np

from mlcd.configuration import Floats
from mlcd.job import Target
from mlcd.modeling.loss_curve import COVERED, EpochsTo, fit

SAMPLING_ERROR = 0.4
"""Of an estimate from a sample of the data, as CE-scaling found it (figure 4a: up to 40 %)."""
SIGMAS = NormalDist().inv_cdf((1 + COVERED) / 2)
"""Standard deviations on each side of an interval."""
SUREST = 0.01
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
    def latest(self) -> float:
        """Epochs that are hardly exceeded."""
        return self.cases[int((1 - UNLIKELY) * len(self.cases))]

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
    seen = curve.epochs_to(sign * target.value)
    cases = spread_over(min(estimate, most), most, len(losses), seen)
    epochs = min(max(cases[CASES // 2], len(losses) + 1.0), most)
    floor = curve.floor if curve.floor > sign * target.value else -inf  # what it stays above; or it is only slow
    return Outlook(epochs, cases, sign * floor, True, isfinite(seen.expected))


def still_missing(losses: tuple[float, ...], target: Target) -> float:
    """Epochs from here to the target by these losses alone, however many there may be; inf where they do not tell."""
    sign = -1.0 if target.at_least else 1.0
    curve = fit([sign * loss for loss in losses])
    return inf if curve is None else curve.epochs_to(sign * target.value).expected - len(losses)


def spread_over(estimate: float, most: float, done: int, seen: EpochsTo | None = None) -> tuple[float, ...]:
    """Numbers of epochs, each as likely as the others; the last one is epoch n where this is within a half of n."""
    x = np.linspace(log(done + 0.5), log(max(most, done + 1) + 0.5), PLACES)
    unlikely = ((x - log(estimate)) / SAMPLING_ERROR) ** 2
    if seen is not None:
        told = log(min(seen.expected, most))
        below = max((told - log(seen.low)) / SIGMAS, SUREST) if seen.low < most else SAMPLING_ERROR
        above = max((log(seen.high) - told) / SIGMAS, SUREST)
        unlikely += ((x - told) / np.where(x < told, below, above)) ** 2
    density = np.exp((unlikely.min() - unlikely) / 2)
    share = np.cumsum(density) - density / 2
    quantiles = (np.arange(CASES) + 0.5) / CASES
    return tuple(np.exp(np.interp(quantiles * density.sum(), share, x)).tolist())
