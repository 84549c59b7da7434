"""The planners by name: each is imported when a job of its kind is met."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mlcd.job import Job

if TYPE_CHECKING:
    from mlcd.assemble.planners.planner import Planner

__all__ = ["planner_of"]


def planner_of(job: Job) -> Planner:
    """The planner that a job is for."""
    if job.service is not None:
        return _planner("serve")
    if job.serverless is not None:
        return _planner("functions")
    return _planner("scale" if job.elastic is not None else "train")


@cache
def _planner(name: str) -> Planner:
    """Of the file of that name, the class of that name."""
    planner: Planner = getattr(import_module(f"mlcd.assemble.planners.{name}"), name.capitalize())()
    return planner
