"""Small simulated clouds for elastic jobs, with known laws of step time, epochs by batch, and failures.

Every launch continues from the saved work, and the progress of a sample depends on its batch.

Symbols   K    nodes                        B      global batch                  b = B / K   one node's share
          tau  seconds of a step            e      epochs to the target          B_n         noise scale, samples
          p    progress: share of the work to the target that is done
          tau = c_0 + c_1 b + (s_0 + s_1 (K - 2) from two nodes on)              e = e_0 (1 + B/B_n) / (1 + B_0/B_n)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mlcd.clouds.virtual import play
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.job import Goal, Hints, Job, Target
from mlcd.core.measurement import Ended, Event, Outcome, Sample, Z
from mlcd.core.place import Cloud
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.scale.nouns import Batch, Mode, Noise, ScalingTask, batch_of

TARGET = Target("accuracy", 0.9)
REPORTS = 40
"""Of a probe."""
NOISE_ERROR = 0.1
USUAL_BATCH = 64
"""B_0: the batch that the job's owner uses, to which `epochs` refers."""


@dataclass(frozen=True)
class Kind:
    """An instance type: its price, the law of its steps, and the largest share of a batch that fits its memory."""

    usd_per_hour: float = 1.0
    c0_s: float = 0.02
    c1_s: float = 0.002
    s0_s: float = 0.03
    s1_s: float = 0.005
    most_local: float = math.inf


@dataclass(frozen=True)
class World:
    """The ground truth. `drift` changes a run's rate with its progress p, and `noise_drift` its noise scale.

    `noise_scale` None: the script reports none. `nan_at`: p from which on the metric is not a number.
    """

    kinds: tuple[Kind, ...] = (Kind(),)
    nodes: tuple[int, ...] = (1, 2, 4)
    batches: tuple[int, ...] = (32, 64, 128, 256)
    dataset: float = 1e5
    epochs: float = 10.0
    most_epochs: float = 40.0
    noise_scale: float | None = 300.0
    probe_s: float = 300.0
    startup_s: float = 20.0
    startup_per_node_s: float = 0.0
    run_reports: int = 40
    error: float = 0.0
    bad_luck: float = 0.0
    seed: int = 0
    drift: Callable[[Configuration, float], float] = lambda configuration, p: 1.0
    noise_drift: Callable[[float], float] = lambda p: 1.0
    nan_at: float = math.inf

    @property
    def space(self) -> Space:
        """All types x nodes x batches."""
        offers = [Offer(f"type-{i}", kind.usd_per_hour, 4, 16) for i, kind in enumerate(self.kinds)]
        choices = tuple(Choice(offer, self.nodes, tuple(Batch(each) for each in self.batches)) for offer in offers)
        return Space(
            choices,
            ProbeTime(self.probe_s, self.probe_s / 10),
            startup_limit_s=2 * self.starts_after_s(max(self.nodes)),
        )

    def job(self, goal: Goal | None = None, mode: Mode = Mode.PARTIAL) -> Job:
        """The job that is trained here, for at most `most_epochs`."""
        return Job(
            "elastic",
            self.dataset * self.most_epochs,
            goal or Goal(),
            hints=Hints(global_batch=USUAL_BATCH),
            checkpoints=True,
            dataset_samples=self.dataset,
            target=TARGET,
            ask=ScalingTask((min(self.nodes), max(self.nodes)), self.batches, mode),
        )

    def starts_after_s(self, nodes: int) -> float:
        """How long so many nodes take to come up."""
        return self.startup_s + self.startup_per_node_s * (nodes - 1)

    def fits(self, configuration: Configuration) -> bool:
        """Whether one node's share of the batch fits its memory."""
        return _local(configuration) <= self._kind(configuration).most_local

    def rate(self, configuration: Configuration) -> float:
        """Samples a second."""
        kind, nodes = self._kind(configuration), configuration.nodes
        sync_s = kind.s0_s + kind.s1_s * (nodes - 2) if nodes > 1 else 0.0
        return _batch(configuration) / (kind.c0_s + kind.c1_s * _local(configuration) + sync_s)

    def samples(self, batch: int) -> float:
        """Samples to the target with this batch."""
        scale = self.noise_scale or math.inf
        return self.dataset * self.epochs * (1 + batch / scale) / (1 + USUAL_BATCH / scale)

    def seconds(self, configuration: Configuration) -> float:
        """Seconds to the target from the beginning, start-up included, as an oracle knows them."""
        to_target_s = self.samples(_batch(configuration)) / self.rate(configuration)
        return self.starts_after_s(configuration.nodes) + to_target_s

    def cloud(self, window_s: float = 300.0) -> Cloud:
        """A cloud with these machines, for searching and running."""
        clock = VirtualClock()
        backend = Machines(self, clock)
        floor = 0.0 if self.error else 0.01
        profiler = TrainingProfiler(backend, floor, None, False, self.error, window_s=window_s)
        return Cloud(self.space, backend, profiler, clock)

    def _kind(self, configuration: Configuration) -> Kind:
        return self.kinds[int(configuration.offer.instance_type.removeprefix("type-"))]


@dataclass(frozen=True)
class Machines:
    """A world's machines on a virtual clock. `done`: the progress p at each checkpoint, by its saved samples."""

    world: World
    clock: VirtualClock
    done: dict[float, float] = field(default_factory=lambda: {0.0: 0.0})

    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        """One launch, which continues from the last checkpoint."""
        rng = np.random.default_rng([self.world.seed, launch.ordinal])
        doomed, at, luck = rng.random() < self.world.bad_luck, int(rng.random() * REPORTS), rng.uniform(-1, 1)
        events = self._events(job, launch, float(np.exp(luck * Z * self.world.error * (1 - 1e-9))))
        return play(_cut_short(events, at, launch) if doomed else events, job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing outlives the process."""

    def _events(self, job: Job, launch: Launch, luck: float) -> Iterator[Event]:
        """Progress reports until the target, or the end of the work."""
        world, where = self.world, launch.configuration
        now_s, samples, p = world.starts_after_s(where.nodes), 0.0, self.done[launch.saved_samples]
        if not world.fits(where):
            yield Ended(now_s, Outcome.OUT_OF_MEMORY)
            return
        yield Sample(now_s, 0.0, evidence=self._noise(p))
        needed, probe = world.samples(_batch(where)), launch.purpose is Purpose.PROBE
        all_of_it = launch.samples if job.target is None else min(launch.samples, max((1 - p) * needed, 1.0))
        apart = world.rate(where) * world.probe_s / REPORTS if probe else all_of_it / world.run_reports
        while samples < launch.samples:
            rate = world.rate(where) * (luck if probe else world.drift(where, p))
            step = min(apart, launch.samples - samples)
            if job.target is not None and p < 1:  # a report at the very moment that it is reached
                step = min(step, max((1 - p) * needed, 1.0))
            samples, now_s, p = samples + step, now_s + step / rate, p + step / needed
            self.done[launch.saved_samples + samples] = p
            yield Sample(now_s, samples, metric=self._metric(job, p), evidence=self._noise(p))
        yield Ended(now_s, Outcome.OK)

    def _metric(self, job: Job, p: float) -> float | None:
        if job.target is None:
            return None
        return math.nan if p >= self.world.nan_at else job.target.value - max(0.0, 1 - p - 1e-12)

    def _noise(self, p: float) -> Noise | None:
        scale = self.world.noise_scale
        return None if scale is None else Noise(scale * self.world.noise_drift(p), NOISE_ERROR)


def _cut_short(events: Iterator[Event], at: int, launch: Launch) -> Iterator[Event]:
    """The events up to number `at`, at which the machines are lost."""
    for i, event in enumerate(events):
        yield event
        if i >= at:
            lost = Outcome.LAUNCH_FAILED if launch.purpose is Purpose.PROBE else Outcome.PREEMPTED
            yield Ended(event.elapsed_s, lost, "bad luck")
            return


def _batch(configuration: Configuration) -> int:
    return batch_of(configuration) or USUAL_BATCH


def _local(configuration: Configuration) -> float:
    return _batch(configuration) / configuration.nodes
