"""Asking a job to save its work and to leave its machines: an elastic job goes on elsewhere from its bucket."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

from mlcd.clouds.skypilot.presence import Answer
from mlcd.clouds.skypilot.task import SHIPPED
from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Sample
from mlcd.planners.scale.nouns import ScalingTask

LEAVE_WITHIN_S = 120.0
"""Timeout of leaving: SkyPilot takes some twenty seconds to pass it on, and a bucket is slower than a disk."""
ASK = f"touch {SHIPPED}/leave"
"""On every node: `start.sh` names the file in MLCD_LEAVE, which the tracker looks for."""
ASKED = "leaving"
"""File in a launch's folder. What was asked to leave is not followed again: it ends without having finished."""


@dataclass
class Leaving:
    """Whether a job was asked to leave, and when it is to be asked because its time is over.

    `ask` returns at once. An answer that never comes does no harm: the machines go, and the last checkpoint counts.
    """

    job: Job
    launch: Launch
    folder: Path
    ask: Callable[[], Answer]
    stop_s: float
    asked_s: float | None = None

    @property
    def due_s(self) -> float:
        """When to ask an elastic job, so that what it has done is not lost with its machines."""
        return self.stop_s - LEAVE_WITHIN_S if isinstance(self.job.ask, ScalingTask) else inf

    def request(self, now_s: float) -> None:
        """Ask, once."""
        if self.asked_s is None:
            (self.folder / ASKED).touch()
            self.asked_s = now_s
            self.ask()

    def is_overdue(self, now_s: float) -> bool:
        """Whether the job has had enough time to leave."""
        return self.asked_s is not None and now_s > self.asked_s + LEAVE_WITHIN_S

    def is_unfinished(self, last: Sample | None) -> bool:
        """Whether a job that ended well did so because its time was over, with work left to do."""
        if self.asked_s is None or self.asked_s < self.due_s or last is None:
            return False
        target = self.job.target
        reached = target is not None and last.metric is not None and target.reached(last.metric)
        return not reached and last.samples < self.launch.samples
