"""A cloud that replays a recording through the same code path as a live one.

A probe takes the recorded time, or half of it if it fails; its rate is the recorded one with noise. The final run
has exactly the recorded rate, since noise averages out over hours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import sqrt

import numpy as np

from mlcd.clouds.recording import Point, Recording
from mlcd.clouds.virtual import gamma_factors, launch_rng, play
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Floats
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample

REPORTS = 30
"""Reports of progress in a probe: enough to estimate its noise within 20 %."""


@dataclass(frozen=True)
class Recorded:
    """Replays a recording. `noise` is the relative error of a whole probe's rate."""

    recording: Recording
    clock: VirtualClock
    noise: float = 0.0
    seed: int = 0

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one launch."""
        point = self.recording.points.get(launch.configuration)
        if point is None:
            raise BackendError(f"{launch.configuration} is not in the recording '{self.recording.name}'")
        return play(self._events(launch, point), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded machine ends with this process."""

    def factors(self, rng: np.random.Generator) -> Floats:
        """The noise of each report of a probe, as a factor on the recorded progress."""
        return gamma_factors(rng, self.noise * sqrt(REPORTS), REPORTS)

    def _events(self, launch: Launch, point: Point) -> Iterator[Event]:
        probe_s = self.recording.probe_time.seconds(launch.configuration.nodes)
        if point.samples_per_s is None:
            return iter([Ended(probe_s / 2, point.outcome, "as recorded")])
        if launch.purpose is Purpose.PROBE:
            shown = np.cumsum(self.factors(launch_rng(self.seed, launch))) / REPORTS
            return _progress(probe_s, point.samples_per_s * probe_s * shown)
        needed_s = launch.samples / point.samples_per_s
        lasts_s = needed_s if launch.lifetime_s is None else min(needed_s, launch.lifetime_s)
        steady = _progress(lasts_s, point.samples_per_s * lasts_s * np.arange(1, REPORTS + 1) / REPORTS)
        return chain(steady, [Ended(lasts_s, Outcome.OK)] if lasts_s >= needed_s else [])


def _progress(lasts_s: float, samples: Floats) -> Iterator[Event]:
    """Evenly spaced reports; the last one is exactly at the end."""
    yield Sample(0.0, 0.0)
    for i, done in enumerate(samples, start=1):
        yield Sample(lasts_s * (i / len(samples)), float(done))
