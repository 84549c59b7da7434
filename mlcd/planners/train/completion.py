"""Steering a training job that has been decided: run it to its end on the chosen configuration."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.configuration import Configuration, Space
from mlcd.guarantee import lifetime_s
from mlcd.history import History
from mlcd.job import Job
from mlcd.measurement import Outcome
from mlcd.strategy import Apply, Finish, Step

MOST_LAUNCHES = 5


@dataclass(frozen=True)
class RunToCompletion:
    """Run on the chosen configuration; launch again what bad luck ended, while the limits allow."""

    configuration: Configuration

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Start, start again after bad luck, or say how it ended."""
        if not history.runs:
            return Apply(self.configuration, "the decided configuration", job.work_samples)
        last = history.runs[-1]
        if last.outcome is Outcome.OK:
            return Finish("the job ran to its end", self.configuration)
        if not last.outcome.is_bad_luck:
            return Finish(f"the job ended: {last.outcome}" + (f", {last.detail}" if last.detail else ""))
        if len(history.runs) >= MOST_LAUNCHES:
            return Finish(f"{MOST_LAUNCHES} launches failed, the last one: {last.outcome}")
        left_s = lifetime_s(job.goal, history, self.configuration)
        if left_s is not None and left_s <= space.startup_limit_s:
            return Finish(f"nothing of the limit is left to launch again after: {last.outcome}")
        return Apply(self.configuration, f"again, after: {last.outcome}", job.work_samples)
