"""Bounds on the batch from memory: what has not fitted on a worker, and what is worth trying below that.

Symbols   b   one worker's share of the global batch
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.planners.scale.share import local_batch, machine_of


def fits_memory(job: Job, configuration: Configuration, history: History) -> bool:
    """Whether no worker of its type has run out of memory with as large a share of the batch."""
    return local_batch(job, configuration) < _wall(job, configuration, history)


def largest_worth_trying(job: Job, mine: Sequence[Configuration], history: History) -> float:
    """b to go up to: halfway, in the log, between what has fitted and what has not; all, while nothing has failed.

    Each failure is paid for: going down from the top by one size at a time would find the wall at every price.
    """
    wall = _wall(job, mine[0], history)
    if wall == inf:
        return inf
    fitted = [
        local_batch(job, m.configuration) for m in history.good if machine_of(m.configuration) == machine_of(mine[0])
    ]
    least = max(fitted, default=min(local_batch(job, c) for c in mine))
    return max(least, sqrt(least * wall))


def _wall(job: Job, configuration: Configuration, history: History) -> float:
    failed = [
        local_batch(job, m.configuration)
        for m in (*history.measurements, *history.runs)
        if m.outcome is Outcome.OUT_OF_MEMORY and machine_of(m.configuration) == machine_of(configuration)
    ]
    return min(failed, default=inf)
