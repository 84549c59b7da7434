"""A configuration's machine type and batch per worker, and whether memory and deadline rule it out.

The budget needs no check here: the guarantee refuses a probe whose worst case exceeds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.planners.scale.nouns import batch_of

DEFAULT_BATCH = 256
"""Where neither the job nor the space states the batch: only ratios depend on it."""

Machine = tuple[str, str, bool]
"""A machine type: the cloud, the instance type, and whether it is spot."""
LARGEST_SPEEDUP = 2.0
"""With another batch a worker is at most about twice as fast as the fastest measured worker of its type."""


def global_batch(job: Job, configuration: Configuration) -> int:
    """The configuration's global batch; the job's own, or a default, where it states none."""
    return batch_of(configuration) or job.hints.global_batch or DEFAULT_BATCH


def machine_of(configuration: Configuration) -> Machine:
    """The machine type, without its price: nodes rented by CPU and GB have another price for each batch."""
    return configuration.offer.cloud, configuration.offer.instance_type, configuration.offer.spot


def local_batch(job: Job, configuration: Configuration) -> float:
    """One worker's share of the batch."""
    return global_batch(job, configuration) / configuration.workers


def fits_memory(job: Job, configuration: Configuration, history: History) -> bool:
    """False if a worker of this type has run out of memory with this local batch or a smaller one."""
    return local_batch(job, configuration) < _smallest_failed_share(job, configuration, history)


def largest_local_batch_to_try(job: Job, mine: Sequence[Configuration], history: History) -> float:
    """The largest local batch to probe: halfway, in the log, between what fitted and what ran out of memory.

    Infinite if nothing failed. Each failure costs a probe, so the search does not go down one size at a time.
    """
    failed = _smallest_failed_share(job, mine[0], history)
    if failed == inf:
        return inf
    fitted = [
        local_batch(job, m.configuration) for m in history.good if machine_of(m.configuration) == machine_of(mine[0])
    ]
    largest_fitted = max(fitted, default=min(local_batch(job, c) for c in mine))
    return max(largest_fitted, sqrt(largest_fitted * failed))


def _smallest_failed_share(job: Job, configuration: Configuration, history: History) -> float:
    failed = [
        local_batch(job, m.configuration)
        for m in (*history.measurements, *history.runs)
        if m.outcome is Outcome.OUT_OF_MEMORY and machine_of(m.configuration) == machine_of(configuration)
    ]
    return min(failed, default=inf)


def may_meet_deadline(job: Job, configuration: Configuration, history: History) -> bool:
    """Whether the rest of the job could meet the deadline if scaling were perfect; `job` is what is left of it."""
    mine = [m for m in history.good if machine_of(m.configuration) == machine_of(configuration)]
    if job.goal.deadline_s is None or not mine:
        return True
    fastest = LARGEST_SPEEDUP * max(m.rate / m.configuration.workers for m in mine)
    return job.work_samples / (fastest * configuration.workers) <= job.goal.deadline_s - history.elapsed_s
