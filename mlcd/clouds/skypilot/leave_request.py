"""Asks a job to save its work and exit: an elastic job then continues elsewhere from its bucket."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

from mlcd.clouds.skypilot.liveness import BackgroundAnswer
from mlcd.clouds.skypilot.task import SHIPPED
from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Sample
from mlcd.planners.scale.nouns import ScalingTask

LEAVE_WITHIN_S = 120.0
"""Timeout of saving and exiting. SkyPilot takes about 20 s to pass the request on; a bucket is slower than a disk."""
LEAVE_COMMAND = f"touch {SHIPPED}/leave"
"""Run on every node. `start.sh` puts the file's name into MLCD_LEAVE; the tracker polls the file."""
REQUESTED_FILE = "leaving"
"""File in a launch's folder: the job was asked to exit. Such a launch is not rejoined, since it ends unfinished."""


@dataclass
class LeaveRequest:
    """Whether and when a job was asked to exit, and when it has to be asked because its lifetime ends.

    `send` returns at once. If it fails, nothing is lost but the work since the last checkpoint.
    """

    job: Job
    launch: Launch
    folder: Path
    send: Callable[[], BackgroundAnswer]
    stop_s: float
    requested_s: float | None = None

    @property
    def due_s(self) -> float:
        """When to ask an elastic job, so that its work is not lost with its machines."""
        return self.stop_s - LEAVE_WITHIN_S if isinstance(self.job.ask, ScalingTask) else inf

    def send_once(self, now_s: float) -> None:
        """Send the request, if it was not sent before."""
        if self.requested_s is None:
            (self.folder / REQUESTED_FILE).touch()
            self.requested_s = now_s
            self.send()

    def is_overdue(self, now_s: float) -> bool:
        """Whether the job has had enough time to exit."""
        return self.requested_s is not None and now_s > self.requested_s + LEAVE_WITHIN_S

    def is_unfinished(self, last: Sample | None) -> bool:
        """Whether a job that ended successfully did so because its lifetime was over, with work left to do."""
        if self.requested_s is None or self.requested_s < self.due_s or last is None:
            return False
        target = self.job.target
        reached = target is not None and last.metric is not None and target.reached(last.metric)
        return not reached and last.samples < self.launch.samples
