"""A cloud on which some probes fail at random: no capacity, a node that never came up."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from mlcd.clouds.virtual import play
from mlcd.core.backend import Backend, Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import ProbeTime
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

STREAM = 1
"""Separates these random numbers from those of the noise: a probe that does not fail shows the same as without."""


@dataclass(frozen=True)
class Failing:
    """Wraps a recorded cloud: this share of its probes fails after half their time."""

    backend: Backend
    clock: VirtualClock
    probe_time: ProbeTime
    share: float
    seed: int = 0

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        """The wrapped cloud's launch, or a failure."""
        if launch.purpose is not Purpose.PROBE or not self.fails(launch):
            return self.backend.run(job, launch)
        half_s = self.probe_time.seconds(launch.configuration.nodes) / 2
        return play([Ended(half_s, Outcome.LAUNCH_FAILED, "failed by chance")], job, launch, self.clock)

    def reclaim(self, label: str) -> float | None:
        """As the wrapped backend does."""
        return self.backend.reclaim(label)

    def fails(self, launch: Launch) -> bool:
        """Whether this launch fails: drawn from its label, so always the same."""
        name = zlib.crc32(launch.configuration.offer.name.encode())
        rng = np.random.default_rng([self.seed, name, launch.configuration.nodes, launch.ordinal, STREAM])
        return bool(rng.random() < self.share)
