"""The variables of an elastic job: its batch, the metric that ends it, and its learning-rate rule."""

from __future__ import annotations

from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.scale.nouns import ScalingTask, batch_of


def scaling_environment(job: Job, configuration: Configuration) -> dict[str, str]:
    """The variables that `mlcd_tracker` reads; none for a job that keeps its batch and has no target."""
    variables = {}
    if job.target is not None:
        variables["MLCD_TARGET"] = f"{'>=' if job.target.at_least else '<='}{job.target.value!r}"
    if batch_of(configuration) is not None:
        variables["MLCD_BATCH"] = str(batch_of(configuration))
    if isinstance(job.ask, ScalingTask):
        variables["MLCD_LR_RULE"] = str(job.ask.learning_rate)
    return variables


def leave_file(checkpoints: str, label: str) -> str:
    """The file that asks the job of a launch to save and exit, in the folder that all its nodes share."""
    return f"{checkpoints}/.leave-{label}"
