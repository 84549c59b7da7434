"""One worker's share of a configuration: which machine it is on, and how much of the batch it takes."""

from __future__ import annotations

from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.scale.nouns import batch_of

USUAL_BATCH = 256
"""Where neither the job nor the space says anything of the batch: only ratios depend on it."""

Machine = tuple[str, str, bool]
"""What makes two configurations differ in nothing but size: the cloud, the type, and whether it is spot."""


def trained_batch(job: Job, configuration: Configuration) -> int:
    """The global batch that it trains with."""
    return batch_of(configuration) or job.hints.global_batch or USUAL_BATCH


def machine_of(configuration: Configuration) -> Machine:
    """What it is made of, whatever it costs: memory that is cut to the batch has a price for each batch."""
    return configuration.offer.cloud, configuration.offer.instance_type, configuration.offer.spot


def local_batch(job: Job, configuration: Configuration) -> float:
    """One worker's share of the batch."""
    return trained_batch(job, configuration) / configuration.workers
