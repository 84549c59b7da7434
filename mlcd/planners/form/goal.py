"""What is to be made small, and within which limits: what was asked, in place of what the file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask

NO_LIMIT = "none"
"""The word for no limit, since None means that nothing was said."""


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
    if chosen.get("confidence") is not None and (
        isinstance(job.ask, ServingTask) or isinstance(job.ask, FunctionsTask)
    ):
        raise UserError("confidence is for jobs on machines; services and functions are certified in another way")
    return new_goal(job.goal, chosen)
