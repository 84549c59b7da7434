"""What an elastic job needs before anything is spent on it."""

from __future__ import annotations

from mlcd.errors import UserError
from mlcd.job import Job, Objective

WHERE = ("simulated", "recorded", "local", "ray")


def check_elastic(job: Job) -> None:
    """One line for what an elastic job lacks, or for what only an elastic job may ask."""
    elastic = job.elastic
    if job.service is None and job.goal.objective is Objective.PER_DOLLAR:
        raise UserError("per-dollar is a goal of `mlcd serve`; training is for fastest or cheapest, or the knee")
    if elastic is None:
        if job.goal.objective is Objective.KNEE:
            raise UserError("the knee is a goal of `mlcd scale`; `mlcd train` is for fastest or cheapest")
        return
    kind = job.on.partition(":")[0]
    if kind not in WHERE:
        raise UserError(f"mlcd scale switches machines under a job, which {kind} cannot; use --on local or ray:FILE")
    if not job.checkpoints:
        raise UserError("the job keeps no checkpoints, so it cannot go on elsewhere: `checkpoints: true`, once it does")
    if len(elastic.batches) > 1 and job.target is None:
        raise UserError(
            "with another batch the same epochs do not give the same model: say what ends the job, as in "
            "--target 'accuracy >= 0.97', or keep one batch, as in --batch 128"
        )
    if len(elastic.batches) > 1 and job.dataset_samples is None:
        raise UserError("work: an elastic job is counted in epochs; say `dataset: 1.28M` and `epochs: 70`, at the most")
    if kind == "recorded" and elastic.batches:
        raise UserError("a recording knows one batch only; leave `--batch` out, or use --on simulated")
