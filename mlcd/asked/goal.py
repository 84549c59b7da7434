"""What is to be made small, and within which limits: what was asked, in place of what the file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.job import Goal, Objective

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
    return replace(goal, **changes)
