"""A job that is trained on machines, as it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.core.job import Job
from mlcd.core.options import new_goal, with_probe_limits


def machines_job(job: Job, chosen: Mapping[str, Any]) -> Job:
    """The job of a file, with what was asked in place of what the file says."""
    goal = new_goal(job.goal, chosen)
    names = ("method", "nodes", "seed", "parallel", "early_look")
    search = replace(job.search, **{name: chosen[name] for name in names if chosen.get(name) is not None})
    if search.early_look == 1:  # a look at the end of a probe is no look
        search = replace(search, early_look=None)
    if chosen.get("instances"):
        search = replace(search, instances=tuple(chosen["instances"]))
    search = with_probe_limits(search, chosen)
    on = chosen.get("on") or job.on
    return replace(job, goal=goal, search=search, on=on, target=None).asking(None)
