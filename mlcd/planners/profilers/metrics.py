"""What the reports of a job say of its metric."""

from __future__ import annotations

import itertools
import math

from mlcd.core.job import Job
from mlcd.core.measurement import Sample


def kept(job: Job, seen: list[Sample]) -> list[Sample]:
    """Of a launch that was cut short, reports of work that a checkpoint holds; a target may be lost with the rest."""
    saved = max((sample.saved for sample in seen), default=0.0)
    return [sample for sample in seen if sample.samples <= saved] if job.checkpoints else seen


def last_metric(job: Job, seen: list[Sample]) -> float | None:
    """The value that reached the target, or the last one."""
    told = [sample.metric for sample in seen if sample.metric is not None and not math.isnan(sample.metric)]
    if job.target is not None:
        told += [metric for metric in told if job.target.reached(metric)][:1]
    return told[-1] if told else None


def looks(seen: list[Sample]) -> int:
    """How often the metric was measured: every report repeats the last value, so a look is where it changes."""
    return sum(1 for metric, _ in itertools.groupby(sample.metric for sample in seen) if metric is not None)
