"""The protocol of what turns a launch into a measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Sample
from mlcd.core.strategy import Look, Watch

Progress = Callable[[Job, Launch, Sample], object]
"""Who hears what a running job reports."""


class Profiler(Protocol):
    """Launches, watches, tears down, and concludes."""

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """What the launch showed and cost, cut short if a look or a watch says so. A failure is a measurement too."""
        ...

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch: the seconds it is billed for, None if nothing was there."""
        ...


@runtime_checkable
class RejoinsLaunches(Protocol):
    """A profiler that can go on watching a launch of the job itself which another process has begun."""

    def still_runs(self, label: str) -> bool:
        """Whether there is such a launch to go on with."""
        ...

    def rejoin(self, job: Job, launch: Launch, watch: Watch | None = None) -> Measurement:
        """What the launch showed, from its start on, as if nobody had ever left it."""
        ...


@runtime_checkable
class TellsProgress(Protocol):
    """A profiler that passes on every report of a running job."""

    def telling(self, progress: Progress) -> Profiler:
        """The same profiler, with somebody who hears every report."""
        ...
