"""A job whose workers and batch are found while it runs, as it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.core.job import Job, Objective
from mlcd.core.options import new_goal, with_probe_limits
from mlcd.planners.scale.nouns import LearningRate, Mode, ScalingTask


def scaling_job(job: Job, chosen: Mapping[str, Any]) -> Job:
    """The job of a file as one that is scaled: what was asked, then what the file says, then what is usual."""
    task = job.blocks.get("scale") or job.ask
    task = task if isinstance(task, ScalingTask) else ScalingTask()
    if chosen.get("workers") is not None:
        task = replace(task, workers=chosen["workers"])
    if chosen.get("batch") is not None:
        task = replace(task, batches=chosen["batch"])
    if chosen.get("search") is not None:
        task = replace(task, mode=Mode(chosen["search"]))
    if chosen.get("learning_rate") is not None:
        task = replace(task, learning_rate=LearningRate(chosen["learning_rate"]))
    search = replace(job.search, method=f"scavenger-{task.mode}")
    if chosen.get("seed") is not None:
        search = replace(search, seed=chosen["seed"])
    if chosen.get("instances"):
        search = replace(search, instances=tuple(chosen["instances"]))
    search = with_probe_limits(search, chosen)
    usual = job.goal if job.goal.stated else replace(job.goal, objective=Objective.KNEE)
    goal = new_goal(usual, chosen)
    target = chosen.get("target") or job.target
    on = chosen.get("on") or job.on
    return replace(job, target=target, search=search, goal=goal, on=on).asking(task)
