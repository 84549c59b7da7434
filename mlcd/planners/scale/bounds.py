"""Bounds on the workers from the deadline: sizes that cannot end in time are not worth a probe.

The budget bounds the workers from above by itself: a probe whose worst case it does not allow is refused.
"""

from __future__ import annotations

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.scale.share import machine_of

BETTER_AT_MOST = 2.0
"""However a worker is fed, it is hardly more than twice as fast as the fastest of its type that was measured."""


def within_reach(job: Job, configuration: Configuration, history: History) -> bool:
    """Whether it could end by the deadline if workers did not hinder each other; `job` is what is left of it."""
    mine = [m for m in history.good if machine_of(m.configuration) == machine_of(configuration)]
    if job.goal.deadline_s is None or not mine:
        return True
    fastest = BETTER_AT_MOST * max(m.rate / m.configuration.workers for m in mine)
    return job.work_samples / (fastest * configuration.workers) <= job.goal.deadline_s - history.elapsed_s
