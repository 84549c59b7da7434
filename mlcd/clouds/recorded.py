"""A backend that replays a recording through the same code path as a live backend.

A probe takes the recorded time, or half of it if it fails; its rate is the recorded rate with noise. The final run
has exactly the recorded rate, since noise averages out over hours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import sqrt

import numpy as np

from mlcd.clouds.recording import Recording
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
    """Replays a recording.

    `noise`: the relative error of a whole probe's rate. `startup_s`: startup time of the machines, part of a probe's
    time. `report_every_s`: reporting interval of a run; None: `REPORTS` reports, however long it takes.
    `failure_detail`: the text that a recorded failure ends with.
    """

    recording: Recording
    clock: VirtualClock
    noise: float = 0.0
    seed: int = 0
    startup_s: float = 0.0
    report_every_s: float | None = None
    failure_detail: str = "as recorded"

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one launch."""
        return play(self.events(launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded machine ends with this process."""

    def factors(self, rng: np.random.Generator) -> Floats:
        """The noise of each report of a probe, as a factor on the recorded progress."""
        return gamma_factors(rng, self.noise * sqrt(REPORTS), REPORTS)

    def events(self, launch: Launch) -> Iterator[Event]:
        """The events of a launch that nobody stops."""
        point = self.recording.points.get(launch.configuration)
        if point is None:
            raise BackendError(f"{launch.configuration} is not in the recording '{self.recording.name}'")
        probe_s = self.recording.probe_time.seconds(launch.configuration.nodes)
        if point.samples_per_s is None:
            return iter([Ended(probe_s / 2, point.outcome, self.failure_detail)])
        if launch.purpose is Purpose.PROBE:
            working_s = probe_s - self.startup_s
            progress = np.cumsum(self.factors(launch_rng(self.seed, launch))) / REPORTS
            times_s = working_s * (np.arange(1, REPORTS + 1) / REPORTS)
            return _progress(self.startup_s, times_s, point.samples_per_s * working_s * progress)
        needed_s = launch.samples / point.samples_per_s
        working_s = needed_s if launch.lifetime_s is None else min(needed_s, launch.lifetime_s - self.startup_s)
        times_s = working_s * (np.arange(1, REPORTS + 1) / REPORTS)
        if self.report_every_s is not None:
            times_s = np.append(np.arange(self.report_every_s, working_s, self.report_every_s), working_s)
        ended = [Ended(self.startup_s + working_s, Outcome.OK)] if working_s >= needed_s else []
        return chain(_progress(self.startup_s, times_s, point.samples_per_s * times_s), ended)


def _progress(startup_s: float, times_s: Floats, samples: Floats) -> Iterator[Event]:
    """Progress reports, from the moment the machines are up; the last one is exactly at the end."""
    yield Sample(startup_s, 0.0)
    for time_s, done in zip(times_s, samples, strict=True):
        yield Sample(startup_s + float(time_s), float(done))
