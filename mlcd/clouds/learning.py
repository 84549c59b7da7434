"""How a simulated job learns: samples to its target by batch, its gradient noise, and its metric over time.

Samples to the target follow the critical batch size of McCandlish et al. (2018), with a noise scale drawn from the
seed. What a launch reports depends only on the samples saved before it and on its batch, so a crash changes nothing.

Symbols   B      global batch             B_0   the batch of the hints
          B_n    noise scale, samples     S     samples to the target at B_0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Event, Sample
from mlcd.planners.scale.nouns import Noise, ScalingTask, batch_of

DEFAULT_BATCH = 256
USUAL_SHARE = 0.6
"""Share of the job's maximum work that reaches the target at its own batch."""
NOISE_ERROR = 0.1
"""Relative error of a measured noise scale."""
STABLE_AFTER_S = 60.0


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
        whole = replace(job, work_samples=launch.samples + launch.saved_samples)  # `samples`: still to do
        to_target = self.samples_to_target(whole, batch_of(launch.configuration)) - launch.saved_samples
        return max(1.0, min(launch.samples, to_target))

    def with_tracker_data(
        self, events: Iterable[Event], job: Job, launch: Launch, rng: np.random.Generator
    ) -> Iterator[Event]:
        """The events with what a tracker adds: the metric and the gradient noise."""
        if job.target is None and not isinstance(job.ask, ScalingTask):
            yield from events
            return
        whole = replace(job, work_samples=launch.samples + launch.saved_samples)
        needed = self.samples_to_target(whole, batch_of(launch.configuration))
        scale = self.noise_scale(job) * float(np.exp(NOISE_ERROR * rng.standard_normal()))
        for event in events:
            if isinstance(event, Sample) and event.samples > 0:
                stable = event.elapsed_s >= STABLE_AFTER_S
                share = (launch.saved_samples + event.samples) / needed
                event = replace(event, metric=_metric(job, share), evidence=Noise(scale, NOISE_ERROR, stable))
            yield event


def _metric(job: Job, share: float) -> float | None:
    """The metric after this share of the samples to the target. At share 1 it equals the target."""
    if job.target is None:
        return None
    gap = max(math.exp(-3 * share) - math.exp(-3), 0.0) if share < 1 - 1e-12 else 0.0
    away = (abs(job.target.value) or 1.0) * gap
    return job.target.value - away if job.target.at_least else job.target.value + away
