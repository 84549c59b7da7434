"""What several planners ask of a job before it starts, and do to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlcd.core.errors import UserError
from mlcd.core.job import Job, Objective

BY_PATH = ("recorded", "local", "ray")
"""Places that are named by a file or a folder."""
ONE_AT_A_TIME = ("local", "ray")
"""Places where launches would wait for, or slow down, each other's nodes."""


def check_goal(job: Job, *, knee: bool = False) -> None:
    """One line for a goal that training does not have. `knee`: whether this kind of it may ask for the knee."""
    if job.goal.objective is Objective.PER_DOLLAR:
        raise UserError("per-dollar is a goal of `mlcd serve`; training is for fastest or cheapest, or the knee")
    if job.goal.objective is Objective.KNEE and not knee:
        raise UserError("the knee is a goal of `mlcd scale`; `mlcd train` is for fastest or cheapest")


def with_usual_place(job: Job) -> Job:
    """With its path made absolute, so that the run can be resumed from any folder; one probe at a time if need be."""
    kind, _, path = job.on.partition(":")
    if path and kind in BY_PATH:
        job = replace(job, on=f"{kind}:{Path(path).resolve()}")
    return one_at_a_time(job) if kind in ONE_AT_A_TIME else job


def one_at_a_time(job: Job) -> Job:
    """With one probe after the other."""
    return replace(job, search=replace(job.search, parallel=1))
