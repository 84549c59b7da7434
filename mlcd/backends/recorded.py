"""A cloud that replays a recording, through the same path as a live one.

A probe takes as long as the recording says, half of that if it fails; its rate is the recorded one
with noise. The final run goes at the recorded rate exactly, since noise averages out over hours.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from mlcd.backend import Launch, Provenance, Purpose
from mlcd.backends.noise import gamma_factors, launch_rng
from mlcd.backends.recording import Recording
from mlcd.clock import VirtualClock
from mlcd.configuration import Floats
from mlcd.errors import BackendError
from mlcd.job import Job
from mlcd.measurement import Ended, Event, Outcome, Sample

REPORTS = 30
"""Reports of progress in a probe: enough to tell its noise within a fifth."""


@dataclass(frozen=True)
class Recorded:
    """Replays a recording. `noise` is the relative error of a whole probe's rate."""

    recording: Recording
    clock: VirtualClock
    noise: float = 0.0
    seed: int = 0

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Generator[Event, None, None]:
        """Replay one launch."""
        point = self.recording.points.get(launch.configuration)
        if point is None:
            raise BackendError(f"{launch.configuration} is not in the recording '{self.recording.name}'")
        if point.samples_per_s is None:
            seconds = self.recording.probe_time.seconds(launch.configuration.nodes) / 2
            self.clock.advance(seconds)
            yield Ended(seconds, point.outcome, "as recorded")
        elif launch.purpose is Purpose.PROBE:
            yield from self._probe(launch, point.samples_per_s)
        else:
            yield from self._final(launch, point.samples_per_s)

    def reclaim(self, label: str) -> None:
        """A recorded machine dies with the process that replays it."""
        return

    def factors(self, rng: np.random.Generator) -> Floats:
        """How much of the recorded progress each report of a probe shows."""
        return gamma_factors(rng, self.noise * sqrt(REPORTS), REPORTS)

    def _probe(self, launch: Launch, rate: float) -> Generator[Event, None, None]:
        whole_s = self.recording.probe_time.seconds(launch.configuration.nodes)
        step_s = whole_s / REPORTS
        done = rate * step_s * np.cumsum(self.factors(launch_rng(self.seed, launch)))
        yield Sample(0.0, 0.0)
        for i, samples in enumerate(done, start=1):
            self.clock.advance(step_s)
            yield Sample(i * step_s, float(samples))

    def _final(self, launch: Launch, rate: float) -> Generator[Event, None, None]:
        needed_s = launch.samples / rate
        lasts_s = needed_s if launch.lifetime_s is None else min(needed_s, launch.lifetime_s)
        yield Sample(0.0, 0.0)
        for i in range(1, REPORTS + 1):
            self.clock.advance(lasts_s / REPORTS)
            yield Sample(lasts_s * i / REPORTS, rate * lasts_s * i / REPORTS)
        if needed_s <= lasts_s:
            yield Ended(lasts_s, Outcome.OK)
