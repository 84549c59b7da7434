"""A job whose workers and batch are found while it runs, as it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.core.job import Elastic, Job, LearningRate, Mode, Objective
from mlcd.planners.form.goal import new_goal
from mlcd.planners.form.probe_limits import with_probe_limits


def elastic_job(job: Job, chosen: Mapping[str, Any]) -> Job:
    """The job of a file as an elastic one: what was asked, then what the file says, then what is usual."""
    elastic = job.elastic or Elastic()
    if chosen.get("workers") is not None:
        elastic = replace(elastic, workers=chosen["workers"])
    if chosen.get("batch") is not None:
        elastic = replace(elastic, batches=chosen["batch"])
    if chosen.get("search") is not None:
        elastic = replace(elastic, mode=Mode(chosen["search"]))
    if chosen.get("learning_rate") is not None:
        elastic = replace(elastic, learning_rate=LearningRate(chosen["learning_rate"]))
    search = replace(job.search, method=f"scavenger-{elastic.mode}")
    if chosen.get("seed") is not None:
        search = replace(search, seed=chosen["seed"])
    if chosen.get("instances"):
        search = replace(search, instances=tuple(chosen["instances"]))
    search = with_probe_limits(search, chosen)
    usual = job.goal if job.goal.stated else replace(job.goal, objective=Objective.KNEE)
    goal = new_goal(usual, chosen)
    target = chosen.get("target") or job.target
    on = chosen.get("on") or job.on
    return replace(job, elastic=elastic, target=target, search=search, goal=goal, on=on, serverless=None)
