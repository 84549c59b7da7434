"""A simulated cloud over the real catalog: the default place, for trying MLCD without an account.

Rates follow `modeling/physics.py`; the efficiency of each type is drawn from the seed. Start-up time, measurement
noise, failed launches, slow machines and preempted spot machines are drawn for each launch.
Nothing here is a measurement, and every report of it says 'simulated'.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mlcd.clouds.learning import Learning
from mlcd.clouds.noise import gamma_factors, launch_rng
from mlcd.clouds.virtual import play
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.modeling.physics import Model, device_gb, needed_gb, samples_per_s
from mlcd.planners.scale.nouns import batch_of

STARTUP_LIMIT_S = 300.0
"""Timeout of a launch that does not come up."""
REPORT_EVERY_S = 10.0
REPORTS_OF_A_RUN = 60
WARM_UP_S = 30.0
"""The rate rises to its full value over this time: caches, autotuning, the input pipeline."""


@dataclass(frozen=True)
class Weather:
    """Noise and failure rates of the simulated cloud."""

    report_scatter: float = 0.06
    launch_failure: float = 0.02
    slow_machine: float = 0.02
    preemptions_per_node_hour: float = 0.02


@dataclass(frozen=True)
class Simulated:
    """The simulated cloud with one seed."""

    clock: VirtualClock
    seed: int = 0
    weather: Weather = field(default_factory=Weather)

    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        """Simulate one launch."""
        return play(self._events(job, launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """A simulated machine dies with the process that simulates it."""

    def true_samples_per_s(self, job: Job, configuration: Configuration) -> float:
        """The rate without noise: what a benchmark's oracle knows and a search never sees."""
        rates = samples_per_s(
            _model(job, configuration),
            job.communication,
            configuration.offer,
            np.array([float(configuration.nodes)]),
            self.efficiency(configuration.offer),
        )
        return float(rates[0])

    def fits(self, job: Job, configuration: Configuration) -> bool:
        """Whether the job fits the memory of one device."""
        needed = needed_gb(_model(job, configuration), configuration.offer, np.array([float(configuration.nodes)]))
        return float(needed[0]) <= device_gb(configuration.offer)

    def efficiency(self, offer: Offer) -> float:
        """The share of its published rate that a type achieves."""
        rng = np.random.default_rng([self.seed, zlib.crc32(offer.instance_type.encode())])
        typical = 0.35 if offer.accelerators else 0.5
        return float(min(0.9, typical * rng.lognormal(0, 0.2)))

    def _events(self, job: Job, launch: Launch) -> Iterator[Event]:
        """The events of this launch if nobody stops it, up to a preemption."""
        rng = launch_rng(self.seed, launch)
        startup_s = self._startup_s(rng, launch.configuration)
        preempted_s = self._preempted_s(rng, launch.configuration)
        undisturbed = self._undisturbed(job, launch, rng, startup_s)
        for event in Learning(self.seed).with_tracker_data(undisturbed, job, launch, rng):
            if event.elapsed_s > preempted_s:
                yield Ended(preempted_s, Outcome.PREEMPTED, "the spot machines were taken back")
                return
            yield event

    def _undisturbed(self, job: Job, launch: Launch, rng: np.random.Generator, startup_s: float) -> Iterator[Event]:
        if rng.random() < self.weather.launch_failure:
            return iter([Ended(startup_s / 2, Outcome.LAUNCH_FAILED, "not enough capacity")])
        if not self.fits(job, launch.configuration):
            return iter([Ended(startup_s + REPORT_EVERY_S, Outcome.OUT_OF_MEMORY)])
        rate = self.true_samples_per_s(job, launch.configuration) * (1 - self.weather.slow_machine * rng.random())
        lasts_s = math.inf if launch.lifetime_s is None else launch.lifetime_s - startup_s
        if launch.purpose is Purpose.PROBE:
            return self._short(rng, rate, startup_s, lasts_s)
        return self._long(rate, startup_s, lasts_s, Learning(self.seed).remaining_samples(job, launch))

    def _short(self, rng: np.random.Generator, rate: float, up_s: float, lasts_s: float) -> Iterator[Event]:
        """A probe: frequent reports, noisy, with a warm-up."""
        yield Sample(up_s, 0.0)
        samples = since_s = 0.0
        while since_s < lasts_s:
            step_s = min(REPORT_EVERY_S, lasts_s - since_s)
            since_s += step_s
            warm = min(1.0, 0.5 + 0.5 * since_s / WARM_UP_S)
            samples += rate * warm * step_s * float(gamma_factors(rng, self.weather.report_scatter, 1)[0])
            yield Sample(up_s + since_s, samples)

    def _long(self, rate: float, up_s: float, lasts_s: float, wanted: float) -> Iterator[Event]:
        """The job itself: over hours the noise averages out."""
        yield Sample(up_s, 0.0)
        needed_s = wanted / rate
        for i in range(1, REPORTS_OF_A_RUN + 1):
            since_s = min(needed_s, lasts_s) * (i / REPORTS_OF_A_RUN)
            yield Sample(up_s + since_s, rate * since_s)
        if needed_s <= lasts_s:
            yield Ended(up_s + needed_s, Outcome.OK)

    def _startup_s(self, rng: np.random.Generator, configuration: Configuration) -> float:
        typical_s = 75 + 12 * math.log2(configuration.nodes + 1)
        return min(STARTUP_LIMIT_S, typical_s * float(rng.lognormal(0, 0.15)))

    def _preempted_s(self, rng: np.random.Generator, configuration: Configuration) -> float:
        """When spot machines are preempted. Drawn for on-demand, too, so that both see the same random numbers."""
        mean_s = 3_600 / (self.weather.preemptions_per_node_hour * configuration.nodes)
        seconds = float(rng.exponential(mean_s))
        return seconds if configuration.offer.spot else math.inf


def _model(job: Job, configuration: Configuration) -> Model:
    """The job for the physical model, with this configuration's batch."""
    model = Model.of(job.hints)
    batch = batch_of(configuration)
    return model if batch is None else replace(model, global_batch=batch)
