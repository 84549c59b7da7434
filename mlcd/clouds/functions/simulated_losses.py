"""Learning curves of simulated trials: a power law of the epochs, drawn from the seed, with noise; some diverge.

    loss(e) = a + (l_0 - a) (1 + e/c)^-d x noise              d = 1: the curve of Peng et al. (Optimus, EuroSys 2018)

The loss of an epoch depends only on the seed, the trial and the epoch, not on the launch that trained it: a crash or
another allocation changes nothing. A training run reaches its target after about E epochs, and a sample of its data
after about f E, with f between 0.6 and 1.4: an estimate from a sample is wrong by up to 40 % (CE-scaling, figure 4a).

Symbols   e   epochs done     a   floor       l_0   loss before the first epoch      c, d   shift and power of the decay
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mlcd.core.job import Job
from mlcd.planners.functions.nouns import FunctionsTask

OFFLINE_ERROR = 0.4
"""Largest relative error of the epochs to the target, as estimated from a sample."""
USUAL_TARGET = 0.5
"""Target of a training run that has none."""
_TRAINING, _TRIAL, _NOISE = 1, 2, 3


@dataclass(frozen=True)
class Curve:
    """A power law from the first loss down to the floor."""

    floor: float
    first: float
    shift: float
    power: float

    def at(self, epochs: float, factor: float = 1.0) -> float:
        """The loss after so many epochs; `factor`: noise on the distance to the floor."""
        return self.floor + (self.first - self.floor) * math.pow(1 + epochs / self.shift, -self.power) * factor


@dataclass(frozen=True)
class Losses:
    """The losses of one seed.

    `noise`: standard deviation of the logarithm of the distance to the floor. `diverging`: the share of a tuning job's
    trials whose loss becomes NaN after a few epochs. `lowest`: no training run gets below it.
    `usual_epochs`: typical epochs to the target if the job states none.
    """

    seed: int = 0
    noise: float = 0.02
    diverging: float = 0.1
    lowest: float | None = None
    usual_epochs: float = 30.0

    def loss(self, job: Job, trial: int, number: int, sampled: bool = False) -> float:
        """The loss after epoch `number` of the trial, counted from 1; `sampled`: on a sample of the data."""
        rng = np.random.default_rng([self.seed, _NOISE, trial, number, sampled])
        factor = math.exp(self.noise * float(rng.standard_normal()))
        if not isinstance(job.ask, FunctionsTask) or job.ask.tuning is None:
            return self.training(job, sampled).at(number, factor)
        curve, diverges_at = self.trial(trial)
        return math.nan if number >= diverges_at else curve.at(number, factor)

    def epochs_to_target(self, job: Job, sampled: bool = False) -> float:
        """E without noise, or that of a sample. The job's own estimate is as wrong as a sample's."""
        rng = np.random.default_rng([self.seed, _TRAINING])
        wrong = float(rng.uniform(1 - OFFLINE_ERROR, 1 + OFFLINE_ERROR))
        made_up = self.usual_epochs * float(rng.lognormal(0, 0.5))
        stated = job.ask.epochs if isinstance(job.ask, FunctionsTask) else None
        estimated = made_up if stated is None else stated
        return estimated if sampled else estimated / wrong

    def training(self, job: Job, sampled: bool = False) -> Curve:
        """The curve of a training run. A target at or below its lowest loss is never reached."""
        rng = np.random.default_rng([self.seed, _TRAINING, 1])
        target = job.target.value if job.target is not None else USUAL_TARGET
        below, above, power = rng.uniform(0.05, 0.4), rng.uniform(0.4, 2.0), rng.uniform(0.5, 1.5)
        floor = target - abs(target) * float(below)
        if self.lowest is not None and self.lowest >= floor:
            floor = self.lowest
        reached = target if floor < target else floor + 0.1 * abs(target)
        first = reached + abs(target) * float(above)
        ratio = ((first - floor) / (reached - floor)) ** (1 / float(power))
        return Curve(floor, first, self.epochs_to_target(job, sampled) / (ratio - 1), float(power))

    def trial(self, trial: int) -> tuple[Curve, float]:
        """The curve of a tuning job's trial, and the epoch at which its loss becomes NaN. Trials differ in a and d."""
        rng = np.random.default_rng([self.seed, _TRIAL, trial])
        floor, power = rng.uniform(0.2, 0.8), rng.uniform(0.3, 1.5)
        diverges, at = rng.random() < self.diverging, int(rng.integers(1, 4))
        return Curve(float(floor), 1.0, 1.0, float(power)), at if diverges else math.inf
