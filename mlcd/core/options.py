"""Options of a command or request that replace the job file's goal, limits, search and place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search

NO_LIMIT = "none"
"""The word for no limit; None means that the option was not given."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option that a planner adds to its command: `--NAME`, the parser of its value, and a line of help."""

    name: str
    parse: Callable[[Any], Any]
    help: str
    metavar: str = "VALUE"


def new_goal(goal: Goal, chosen: Mapping[str, Any]) -> Goal:
    """The goal with the chosen options."""
    changes: dict[str, Any] = {}
    if chosen.get("goal"):
        changes |= {"objective": Objective(chosen["goal"]), "stated": True}
    for option, field in (("budget", "budget_usd"), ("deadline", "deadline_s")):
        if chosen.get(option) is not None:
            changes[field] = None if chosen[option] == NO_LIMIT else chosen[option]
    if chosen.get("confidence") is not None:
        changes["confidence"] = chosen["confidence"]
    return replace(goal, **changes)


def goal_again(job: Job, chosen: Mapping[str, Any]) -> Goal:
    """The goal for deciding a run again with the chosen options."""
    if chosen.get("confidence") is not None and job.ask is not None and not job.ask.has_confidence:
        raise UserError("confidence is for jobs on machines; served models and functions are certified in another way")
    return new_goal(job.goal, chosen)


def new_search(search: Search, chosen: Mapping[str, Any]) -> Search:
    """The search with the chosen options."""
    names = ("method", "nodes", "seed", "parallel", "early_look")
    changes = {name: chosen[name] for name in names if chosen.get(name) is not None}
    if changes.get("early_look") == 1:  # a look at the end of a probe is not early
        changes["early_look"] = None
    if chosen.get("instances"):
        changes["instances"] = tuple(chosen["instances"])
    return with_probe_limits(replace(search, **changes), chosen)


def with_probe_limits(search: Search, chosen: Mapping[str, Any]) -> Search:
    """The search with the chosen price limits. 'none' for `max_probe` becomes infinity, or it would get the default."""
    if (max_probe := chosen.get("max_probe")) is not None:
        search = replace(search, max_probe_usd=inf if max_probe == NO_LIMIT else max_probe)
    if (max_hourly := chosen.get("max_hourly")) is not None:
        search = replace(search, max_hourly_usd=None if max_hourly == NO_LIMIT else max_hourly)
    return search


def new_job(job: Job, chosen: Mapping[str, Any]) -> Job:
    """The job of a file with the chosen goal, search and place."""
    goal, search = new_goal(job.goal, chosen), new_search(job.search, chosen)
    return replace(job, goal=goal, search=search, on=chosen.get("on") or job.on)
