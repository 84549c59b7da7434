"""A made-up cloud over the real catalog: the embedded default, for trying MLCD without an account.

Rates follow `modeling/physics.py` with an efficiency of each type's own, drawn from the seed; start-up,
measurement noise, launches that fail, slow machines and preempted spot machines are drawn for each launch.
Nothing that comes from here is a measurement, and everything shown of it says 'simulated'.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from mlcd.backend import Launch, Provenance, Purpose
from mlcd.backends.noise import gamma_factors, launch_rng
from mlcd.clock import VirtualClock
from mlcd.configuration import Configuration, Offer
from mlcd.job import Job
from mlcd.measurement import Ended, Event, Outcome, Sample
from mlcd.modeling.physics import Model, device_gb, needed_gb, samples_per_s

STARTUP_LIMIT_S = 300.0
"""A launch that is not up by then is given up."""
REPORT_EVERY_S = 10.0
REPORTS_OF_A_RUN = 60
WARM_UP_S = 30.0
"""The rate climbs to its full height over this time: caches, autotuning, the input pipeline."""


@dataclass(frozen=True)
class Weather:
    """How rough the simulated cloud is."""

    report_scatter: float = 0.06
    launch_failure: float = 0.02
    slow_machine: float = 0.02
    preemptions_per_node_hour: float = 0.02


@dataclass(frozen=True)
class Simulated:
    """The simulated cloud of one seed."""

    clock: VirtualClock
    seed: int = 0
    weather: Weather = field(default_factory=Weather)

    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Generator[Event, None, None]:
        """Simulate one launch."""
        rng = launch_rng(self.seed, launch)
        configuration = launch.configuration
        lifetime_s = math.inf if launch.lifetime_s is None else launch.lifetime_s
        startup_s = min(STARTUP_LIMIT_S, (75 + 12 * math.log2(configuration.nodes + 1)) * rng.lognormal(0, 0.15))
        preempted_s = self._preempted_s(rng, configuration)
        if rng.random() < self.weather.launch_failure:
            yield self._end(0.0, min(startup_s / 2, lifetime_s), Outcome.LAUNCH_FAILED, "not enough capacity")
            return
        if not self.fits(job, configuration):
            yield self._end(0.0, min(startup_s + REPORT_EVERY_S, lifetime_s), Outcome.OUT_OF_MEMORY, "out of memory")
            return
        if startup_s >= lifetime_s:
            self.clock.advance(lifetime_s)
            return
        self.clock.advance(startup_s)
        yield Sample(startup_s, 0.0)
        rate = self.true_samples_per_s(job, configuration) * (1 - self.weather.slow_machine * rng.random())
        if launch.purpose is Purpose.PROBE:
            yield from self._probe(rng, rate, startup_s, min(lifetime_s, preempted_s), preempted_s)
        else:
            yield from self._final(launch.samples, rate, startup_s, min(lifetime_s, preempted_s), preempted_s)

    def reclaim(self, label: str) -> None:
        """A simulated machine dies with the process that simulates it."""
        return

    def true_samples_per_s(self, job: Job, configuration: Configuration) -> float:
        """The rate without noise: what a benchmark's oracle knows and a search never sees."""
        rates = samples_per_s(
            Model.of(job.hints),
            job.communication,
            configuration.offer,
            np.array([float(configuration.nodes)]),
            self.efficiency(configuration.offer),
        )
        return float(rates[0])

    def fits(self, job: Job, configuration: Configuration) -> bool:
        """Whether the job fits the memory of one device."""
        needed = needed_gb(Model.of(job.hints), configuration.offer, np.array([float(configuration.nodes)]))
        return float(needed[0]) <= device_gb(configuration.offer)

    def efficiency(self, offer: Offer) -> float:
        """The share of its published rate that a type keeps."""
        rng = np.random.default_rng([self.seed, zlib.crc32(offer.instance_type.encode())])
        typical = 0.35 if offer.accelerators else 0.5
        return float(min(0.9, typical * rng.lognormal(0, 0.2)))

    def _probe(
        self, rng: np.random.Generator, rate: float, at_s: float, until_s: float, preempted_s: float
    ) -> Generator[Event, None, None]:
        samples, up_s = 0.0, at_s
        while at_s < until_s:
            step_s = min(REPORT_EVERY_S, until_s - at_s)
            at_s += step_s
            warm = min(1.0, 0.5 + 0.5 * (at_s - up_s) / WARM_UP_S)
            samples += rate * warm * step_s * float(gamma_factors(rng, self.weather.report_scatter, 1)[0])
            self.clock.advance(step_s)
            yield Sample(at_s, samples)
        if at_s >= preempted_s:
            yield Ended(at_s, Outcome.PREEMPTED, "the spot machines were taken back")

    def _final(
        self, samples: float, rate: float, up_s: float, until_s: float, preempted_s: float
    ) -> Generator[Event, None, None]:
        needed_s = samples / rate
        lasts_s = min(needed_s, until_s - up_s)
        for i in range(1, REPORTS_OF_A_RUN + 1):
            self.clock.advance(lasts_s / REPORTS_OF_A_RUN)
            share_s = lasts_s * i / REPORTS_OF_A_RUN
            yield Sample(up_s + share_s, rate * share_s)
        if lasts_s >= needed_s:
            yield Ended(up_s + lasts_s, Outcome.OK)
        elif up_s + lasts_s >= preempted_s:
            yield Ended(up_s + lasts_s, Outcome.PREEMPTED, "the spot machines were taken back")

    def _preempted_s(self, rng: np.random.Generator, configuration: Configuration) -> float:
        mean_s = 3_600 / (self.weather.preemptions_per_node_hour * configuration.nodes)
        seconds = float(rng.exponential(mean_s))  # drawn for all, so that spot and on-demand see the same weather
        return seconds if configuration.offer.spot else math.inf

    def _end(self, from_s: float, at_s: float, outcome: Outcome, detail: str) -> Ended:
        self.clock.advance(at_s - from_s)
        return Ended(at_s, outcome, detail)
