"""What the command line, or a request, says in place of the job file: its goal, its limits, how to search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search

NO_LIMIT = "none"
"""The word for no limit, since None means that nothing was said."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option that a planner adds to its command: `--NAME`, how its value is read, and a line of help."""

    name: str
    parse: Callable[[Any], Any]
    help: str
    metavar: str = "VALUE"


def new_goal(goal: Goal, chosen: Mapping[str, Any]) -> Goal:
    """A goal with what was asked in place of its own words."""
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
    """The goal of a run that is decided again, with what is asked now."""
    if chosen.get("confidence") is not None and job.ask is not None and not job.ask.has_confidence:
        raise UserError("confidence is for jobs on machines; served models and functions are certified in another way")
    return new_goal(job.goal, chosen)


def new_search(search: Search, chosen: Mapping[str, Any]) -> Search:
    """A search with what was asked in place of its own words."""
    names = ("method", "nodes", "seed", "parallel", "early_look")
    changes = {name: chosen[name] for name in names if chosen.get(name) is not None}
    if changes.get("early_look") == 1:  # a look at the end of a probe is no look
        changes["early_look"] = None
    if chosen.get("instances"):
        changes["instances"] = tuple(chosen["instances"])
    return with_probe_limits(replace(search, **changes), chosen)


def with_probe_limits(search: Search, chosen: Mapping[str, Any]) -> Search:
    """The search with the limits that were asked for. 'none' for `max_probe` is infinite: it keeps the default away."""
    if (max_probe := chosen.get("max_probe")) is not None:
        search = replace(search, max_probe_usd=inf if max_probe == NO_LIMIT else max_probe)
    if (max_hourly := chosen.get("max_hourly")) is not None:
        search = replace(search, max_hourly_usd=None if max_hourly == NO_LIMIT else max_hourly)
    return search


def new_job(job: Job, chosen: Mapping[str, Any]) -> Job:
    """The job of a file with the goal, the search and the place that were asked for."""
    goal, search = new_goal(job.goal, chosen), new_search(job.search, chosen)
    return replace(job, goal=goal, search=search, on=chosen.get("on") or job.on)
