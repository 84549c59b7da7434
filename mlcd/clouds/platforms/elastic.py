"""What an elastic job is told: the batch to train with, the metric that ends it, how its learning rate follows."""

from __future__ import annotations

from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.scale.nouns import ScalingTask, batch_of


def elastic_environment(job: Job, configuration: Configuration) -> dict[str, str]:
    """The variables that `mlcd_tracker` reads; none for a job that keeps its batch and has no target."""
    told = {}
    if job.target is not None:
        told["MLCD_TARGET"] = f"{'>=' if job.target.at_least else '<='}{job.target.value!r}"
    if batch_of(configuration) is not None:
        told["MLCD_BATCH"] = str(batch_of(configuration))
    if isinstance(job.ask, ScalingTask):
        told["MLCD_LR_RULE"] = str(job.ask.learning_rate)
    return told


def leave_file(checkpoints: str, label: str) -> str:
    """The file that asks the job of a launch to save and leave: in the folder that all its nodes share."""
    return f"{checkpoints}/.leave-{label}"
