"""Simulated functions on a virtual clock: for trying MLCD without an account, and for tests.

An epoch follows the equations of `epoch_model/epoch.py` with a known calibration, the truth of the simulation.
`simulated_epochs.py` adds noise and failures, and decides which trial trains when. Nothing here is a measurement.

Trials that do not fit in parallel wait in a queue. A failed epoch is retried as a whole, and every attempt is billed.
Functions that the launch before has prewarmed (`TrainEpochs.then`) have been starting meanwhile.

Learning curves of simulated trials: a power law of the epochs, drawn from the seed, with noise; some diverge.

    loss(e) = a + (l_0 - a) (1 + e/c)^-d x noise              d = 1: the curve of Peng et al. (Optimus, EuroSys 2018)

The loss of an epoch depends only on the seed, the trial and the epoch, not on the launch that trained it: a crash or
another allocation changes nothing. A training run reaches its target after about E epochs, and a sample of its data
after about f E, with f between 0.6 and 1.4: an estimate from a sample is wrong by up to 40 % (CE-scaling, figure 4a).

Symbols   e   epochs done     a   floor       l_0   loss before the first epoch      c, d   shift and power of the decay
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mlcd.clouds.functions.simulated_epochs import Attempt, Platform, Schedule, epoch_report
from mlcd.clouds.virtual import launch_rng, play
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import (
    MOST_ATTEMPTS,
    SAMPLE_SHARE,
    Allocation,
    Calibrated,
    Calibration,
    FunctionsTask,
    TrainEpochs,
    work_of,
)
from mlcd.planners.functions.space import allocation_at

CALIBRATION_ITERATIONS = 3
"""Iterations of a calibration."""
OFFLINE_ERROR = 0.4
"""Largest relative error of the epochs to the target, as estimated from a sample."""
USUAL_TARGET = 0.5
"""Target of a training run that has none."""
_TRAINING, _TRIAL, _NOISE = 1, 2, 3
SMALL_MB = 0.001
"""An object whose transfer time is latency only."""


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
        """E without noise, or that of a sample. The job's own estimate has the same error as a sample's."""
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


@dataclass(frozen=True)
class SimulatedFunctions:
    """Functions with one seed. `calibration`: their true parameters.

    `losses`: learning curves, by default drawn from the same seed. `prewarmed`: allocations of the next launch, with
    the seconds for which their functions have been starting.
    """

    clock: VirtualClock
    calibration: Calibration
    seed: int = 0
    platform: Platform = field(default_factory=Platform)
    losses: Losses | None = None
    prewarmed: dict[Allocation, float] = field(default_factory=dict)

    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        """Simulate one launch."""
        return play(self._events(job, launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a simulated function ends with this process."""

    def _events(self, job: Job, launch: Launch) -> Iterator[Event]:
        work = work_of(launch)
        model, where = self._model(job, work), allocation_at(launch.configuration)
        if not model.exists(where.storage):
            why = f"a model of {model.workload.model_mb:g} MB cannot be exchanged through {where.storage}"
            yield Ended(model.calibration.start[0] + 1.0, Outcome.FAILED, why)
        elif work is None:
            yield from self._calibrate(launch_rng(self.seed, launch), model, where)
        else:
            yield from self._train(job, launch, work)

    def _calibrate(self, rng: np.random.Generator, model: EpochModel, where: Allocation) -> Iterator[Event]:
        """A few iterations, which measure each part of an epoch."""
        truth, workload, n = model.parts(where), model.workload, where.functions
        link, iterations = self.calibration.links[where.storage], workload.iterations(n)
        objects = [link.latency_s + size / link.mb_per_s for size in (SMALL_MB, workload.model_mb)]
        start_s, load_s, compute_s, sync_s, small_s, large_s = self.platform.noisy(
            rng, [truth.start_s, truth.load_s, truth.compute_s, truth.sync_s, *objects]
        )
        share = min(CALIBRATION_ITERATIONS, iterations) / iterations
        loaded_s = start_s + share * load_s
        computed_s = loaded_s + share * compute_s
        over_s = computed_s + share * sync_s + small_s + large_s
        calibrated = Calibrated(
            where,
            s_per_mb=compute_s * n / workload.data_mb,
            load_mb_per_s=workload.data_mb / (n * load_s),
            start_s=start_s,
            sync_s=sync_s / iterations,
            transfers=((SMALL_MB, small_s), (workload.model_mb, large_s)),
        )
        yield Sample(start_s, 0.0)
        yield Sample(loaded_s, 0.0)
        yield Sample(computed_s, share * workload.samples)
        yield Sample(over_s, share * workload.samples, evidence=calibrated)
        yield Ended(over_s, Outcome.OK)

    def _train(self, job: Job, launch: Launch, work: TrainEpochs) -> Iterator[Event]:
        """Epochs in the order in which they end, until all are done or one has failed."""
        started_s = self.prewarmed.pop(allocation_at(launch.configuration), 0.0)
        self.prewarmed.clear()
        schedule = self._schedule(job, launch, work, started_s)
        losses, now_s, samples, missing = self.losses or Losses(self.seed), 0.0, 0.0, len(work.trials) * work.epochs
        tries: dict[int, list[Attempt]] = {}
        for each in schedule:
            now_s = each.end_s
            tries.setdefault(each.trial, []).append(each)
            if not each.lost:
                samples, missing = samples + each.model.workload.samples, missing - 1
                loss = losses.loss(job, each.trial, each.number, sampled=work.sample_of is not None)
                yield Sample(now_s, samples, metric=loss, evidence=epoch_report(tries.pop(each.trial), loss))
        if (broken := schedule.broken) is not None:
            why = f"functions died in {MOST_ATTEMPTS} attempts at epoch {broken.number} of trial {broken.trial}"
            yield Ended(now_s, Outcome.FAILED, why)
        elif missing:
            yield Ended(now_s, Outcome.AT_THE_LIMIT, f"the rest of the budget does not pay for {missing:,} more epochs")
        else:
            if work.then is not None:
                self.prewarmed[work.then] = schedule.begun[-1].parts.seconds
            yield Ended(now_s, Outcome.OK)

    def _schedule(self, job: Job, launch: Launch, work: TrainEpochs, started_s: float = 0.0) -> Schedule:
        """The schedule. Functions of the first attempts have been starting for `started_s`."""
        model, where, rng = self._model(job, work), allocation_at(launch.configuration), launch_rng(self.seed, launch)

        def draw(planned: Attempt) -> Attempt:
            return self.platform.attempt(rng, planned, 0.0 if planned.begin_s else started_s)

        return Schedule(
            work,
            max(1, launch.configuration.nodes // where.functions),
            math.inf if launch.most_usd is None else launch.most_usd,
            Attempt(0, 0, 0.0, model.parts(where), where, model, model.requests(where)),
            draw,
        )

    def _model(self, job: Job, work: TrainEpochs | None) -> EpochModel:
        """The true model of an epoch of this job, or of a sample of its data."""
        if not isinstance(job.ask, FunctionsTask) or job.ask.tariff is None:
            raise BackendError(f"'{job.name}' is not a job on functions, or has no prices")
        workload = job.ask.workload
        if work is not None and work.sample_of is not None:
            workload = workload.sampled(SAMPLE_SHARE, work.sample_of)
        return EpochModel(workload, job.ask.tariff, self.calibration)
