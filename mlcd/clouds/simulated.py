"""The simulated backend, with the real catalog: the default place, for trying MLCD without an account.

Rates follow `modeling/physics.py`; those of training plans follow `simulated_plans.py`. The efficiency of each type is
drawn from the seed. Start-up time, measurement noise, failed launches, slow machines and preemptions are drawn for each
launch. Nothing here is a measurement, and every report of it says 'simulated'.

Samples to a job's target follow the critical batch size of McCandlish et al. (2018), with a noise scale drawn from the
seed. What a launch reports depends only on the samples saved before it and on its batch, so a crash changes nothing.

Symbols   B      global batch             B_0   the batch of the hints
          B_n    noise scale, samples     S     samples to the target at B_0
"""

import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mlcd.clouds.virtual import gamma_factors, launch_rng, play, spot_remaining_s
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import NoCapacity
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.modeling.physics import Model, device_gb, needed_gb, samples_per_s
from mlcd.planners.scale.nouns import Noise, ScalingTask, batch_of
from mlcd.planners.train.nouns import planned_training

STARTUP_LIMIT_S = 300.0
"""Longest startup time of a launch."""
REPORT_EVERY_S = 10.0
REPORTS_OF_A_RUN = 60
SAVED_EVERY_S = 1_800.0
"""Interval at which a job on spot machines saves its work and reports."""
WARM_UP_S = 30.0
"""The rate rises to its full value over this time: caches, autotuning, the input pipeline."""
DEFAULT_BATCH = 256
USUAL_SHARE = 0.6
"""Share of the job's maximum work that reaches the target at its own batch."""
NOISE_ERROR = 0.1
"""Relative error of a measured noise scale."""
STABLE_AFTER_S = 60.0


@dataclass(frozen=True)
class Weather:
    """Noise and failure rates of the simulated cloud.

    `spot_up_h`, `spot_down_h`: mean time for which the spot market of a zone has machines, and has none.
    """

    report_scatter: float = 0.06
    launch_failure: float = 0.02
    slow_machine: float = 0.02
    preemptions_per_node_hour: float = 0.02
    spot_up_h: float = 8.0
    spot_down_h: float = 3.0


@dataclass(frozen=True)
class Simulated:
    """The simulated cloud with one seed."""

    clock: VirtualClock
    seed: int = 0
    weather: Weather = field(default_factory=Weather)

    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        """Simulate one launch."""
        if launch.market is not None and launch.market.spot and self._spot_remaining_s(launch.market) <= 0:
            raise NoCapacity(f"{launch.market}: no machines available")
        return play(self._events(job, launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a simulated machine ends with this process."""

    def true_samples_per_s(self, job: Job, configuration: Configuration) -> float:
        """The rate without noise. A benchmark's oracle knows it; a search never sees it."""
        if (training := planned_training(job)) is not None:
            from mlcd.clouds.simulated_plans import SimulatedPlans

            return SimulatedPlans(self.seed).samples_per_s(configuration, training)
        model, nodes, offer = _model(job, configuration), np.array([float(configuration.nodes)]), configuration.offer
        return float(samples_per_s(model, job.communication, offer, nodes, self.efficiency(offer))[0])

    def fits(self, job: Job, configuration: Configuration) -> bool:
        """Whether the job fits the memory of one device."""
        if (training := planned_training(job)) is not None:
            from mlcd.clouds.simulated_plans import SimulatedPlans

            return SimulatedPlans(self.seed).fits(configuration, training)
        needed = needed_gb(_model(job, configuration), configuration.offer, np.array([float(configuration.nodes)]))
        return float(needed[0]) <= device_gb(configuration.offer)

    def efficiency(self, offer: Offer) -> float:
        """The share of its published rate that a type achieves."""
        rng = np.random.default_rng([self.seed, zlib.crc32(offer.instance_type.encode())])
        typical = 0.35 if offer.accelerators else 0.5
        return float(min(0.9, typical * rng.lognormal(0, 0.2)))

    def _events(self, job: Job, launch: Launch) -> Iterator[Event]:
        """The events of a launch that nobody stops, up to a preemption."""
        rng = launch_rng(self.seed, launch)
        nodes = launch.configuration.nodes
        startup_s = min(STARTUP_LIMIT_S, (75 + 12 * math.log2(nodes + 1)) * float(rng.lognormal(0, 0.15)))
        # Drawn for on-demand machines too, so that both draw the same random numbers afterwards.
        preempted_s = float(rng.exponential(3_600 / (self.weather.preemptions_per_node_hour * nodes)))
        if launch.market is not None and launch.market.spot:
            preempted_s = self._spot_remaining_s(launch.market)
        elif not launch.configuration.offer.spot:
            preempted_s = math.inf
        undisturbed = self._undisturbed(job, launch, rng, startup_s)
        for event in Learning(self.seed).with_tracker_data(undisturbed, job, launch, rng):
            if event.elapsed_s > preempted_s:
                yield Ended(preempted_s, Outcome.PREEMPTED, "the spot machines were taken back")
                return
            yield event

    def _spot_remaining_s(self, market: Market) -> float:
        """For how many more seconds the spot market of a zone has machines; 0 if it has none now."""
        up_s, down_s = 3_600 * self.weather.spot_up_h, 3_600 * self.weather.spot_down_h
        return spot_remaining_s(self.seed, market.zone, self.clock.elapsed_s(), up_s, down_s)

    def _undisturbed(self, job: Job, launch: Launch, rng: np.random.Generator, startup_s: float) -> Iterator[Event]:
        if rng.random() < self.weather.launch_failure:
            return iter([Ended(startup_s / 2, Outcome.LAUNCH_FAILED, "not enough capacity")])
        if not self.fits(job, launch.configuration):
            return iter([Ended(startup_s + REPORT_EVERY_S, Outcome.OUT_OF_MEMORY)])
        rate = self.true_samples_per_s(job, launch.configuration) * (1 - self.weather.slow_machine * rng.random())
        time_left_s = math.inf if launch.lifetime_s is None else launch.lifetime_s - startup_s
        if launch.purpose is Purpose.PROBE:
            return self._probe(rng, rate, startup_s, time_left_s)
        samples = Learning(self.seed).remaining_samples(job, launch)
        saves = math.ceil(min(samples / rate, time_left_s) / SAVED_EVERY_S) if launch.market is not None else 0
        return self._whole_job(rate, startup_s, time_left_s, samples, max(REPORTS_OF_A_RUN, saves))

    def _probe(self, rng: np.random.Generator, rate: float, startup_s: float, time_left_s: float) -> Iterator[Event]:
        """A probe: frequent, noisy reports, with a warm-up."""
        yield Sample(startup_s, 0.0)
        samples = since_s = 0.0
        while since_s < time_left_s:
            step_s = min(REPORT_EVERY_S, time_left_s - since_s)
            since_s += step_s
            warm_up = min(1.0, 0.5 + 0.5 * since_s / WARM_UP_S)
            samples += rate * warm_up * step_s * float(gamma_factors(rng, self.weather.report_scatter, 1)[0])
            yield Sample(startup_s + since_s, samples)

    def _whole_job(
        self, rate: float, startup_s: float, time_left_s: float, samples: float, reports: int
    ) -> Iterator[Event]:
        """The job itself, without noise: over hours it averages out."""
        yield Sample(startup_s, 0.0)
        needed_s = samples / rate
        for i in range(1, reports + 1):
            since_s = min(needed_s, time_left_s) * (i / reports)
            yield Sample(startup_s + since_s, rate * since_s)
        if needed_s <= time_left_s:
            yield Ended(startup_s + needed_s, Outcome.OK)


@dataclass(frozen=True)
class Learning:
    """The learning curves of the simulated cloud with one seed."""

    seed: int = 0

    def noise_scale(self, job: Job) -> float:
        """B_n: a few times the batch in the job's hints."""
        rng = np.random.default_rng([self.seed, 0xBA7C4])
        return (job.hints.global_batch or DEFAULT_BATCH) * 6.0 * float(rng.lognormal(0, 0.7))

    def samples_to_target(self, job: Job, batch: int | None) -> float:
        """S (1 + B/B_n) / (1 + B_0/B_n); infinite without a target."""
        if job.target is None:
            return math.inf
        usual = job.hints.global_batch or DEFAULT_BATCH
        epochs = job.ask.epochs if isinstance(job.ask, ScalingTask) else None
        samples = epochs * job.dataset_samples if epochs and job.dataset_samples else USUAL_SHARE * job.work_samples
        scale = self.noise_scale(job)
        return samples * (1 + (batch or usual) / scale) / (1 + usual / scale)

    def remaining_samples(self, job: Job, launch: Launch) -> float:
        """Samples that a launch processes before the job ends by itself."""
        return max(1.0, min(launch.samples, self._whole_samples(job, launch) - launch.saved_samples))

    def _whole_samples(self, job: Job, launch: Launch) -> float:
        whole = replace(job, work_samples=launch.samples + launch.saved_samples)  # `samples`: still to do
        return self.samples_to_target(whole, batch_of(launch.configuration))

    def with_tracker_data(
        self, events: Iterable[Event], job: Job, launch: Launch, rng: np.random.Generator
    ) -> Iterator[Event]:
        """The events, with the metric and the gradient noise that a tracker reports."""
        if job.target is None and not isinstance(job.ask, ScalingTask):
            yield from events
            return
        needed = self._whole_samples(job, launch)
        scale = self.noise_scale(job) * float(np.exp(NOISE_ERROR * rng.standard_normal()))
        for event in events:
            if isinstance(event, Sample) and event.samples > 0:
                stable = event.elapsed_s >= STABLE_AFTER_S
                share = (launch.saved_samples + event.samples) / needed
                event = replace(event, metric=_metric(job, share), evidence=Noise(scale, NOISE_ERROR, stable))
            yield event


def _metric(job: Job, share: float) -> float | None:
    """The metric after this share of the samples to the target. It reaches the target at share 1."""
    if job.target is None:
        return None
    gap = max(math.exp(-3 * share) - math.exp(-3), 0.0) if share < 1 - 1e-12 else 0.0
    away = (abs(job.target.value) or 1.0) * gap
    return job.target.value - away if job.target.at_least else job.target.value + away


def _model(job: Job, configuration: Configuration) -> Model:
    """The job's description for the performance model, with this configuration's batch."""
    model = Model.of(job.hints)
    batch = batch_of(configuration)
    return model if batch is None else replace(model, global_batch=batch)
