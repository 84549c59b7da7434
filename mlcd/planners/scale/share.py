"""One worker's share of a configuration: its machine, its part of the batch, and what memory and deadline rule out.

The budget bounds the workers from above by itself: a probe whose worst case it does not allow is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.planners.scale.nouns import batch_of

USUAL_BATCH = 256
"""Where neither the job nor the space says anything of the batch: only ratios depend on it."""

Machine = tuple[str, str, bool]
"""What makes two configurations differ in nothing but size: the cloud, the type, and whether it is spot."""
BETTER_AT_MOST = 2.0
"""However a worker is fed, it is hardly more than twice as fast as the fastest of its type that was measured."""


def trained_batch(job: Job, configuration: Configuration) -> int:
    """The global batch that it trains with."""
    return batch_of(configuration) or job.hints.global_batch or USUAL_BATCH


def machine_of(configuration: Configuration) -> Machine:
    """What it is made of, whatever it costs: memory that is cut to the batch has a price for each batch."""
    return configuration.offer.cloud, configuration.offer.instance_type, configuration.offer.spot


def local_batch(job: Job, configuration: Configuration) -> float:
    """One worker's share of the batch."""
    return trained_batch(job, configuration) / configuration.workers


def fits_memory(job: Job, configuration: Configuration, history: History) -> bool:
    """Whether no worker of its type has run out of memory with as large a share of the batch."""
    return local_batch(job, configuration) < _wall(job, configuration, history)


def largest_worth_trying(job: Job, mine: Sequence[Configuration], history: History) -> float:
    """The share to go up to: halfway, in the log, between what has fitted and what has not; any, if nothing failed.

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


def within_reach(job: Job, configuration: Configuration, history: History) -> bool:
    """Whether it could end by the deadline if workers did not hinder each other; `job` is what is left of it."""
    mine = [m for m in history.good if machine_of(m.configuration) == machine_of(configuration)]
    if job.goal.deadline_s is None or not mine:
        return True
    fastest = BETTER_AT_MOST * max(m.rate / m.configuration.workers for m in mine)
    return job.work_samples / (fastest * configuration.workers) <= job.goal.deadline_s - history.elapsed_s
