"""The goal of a run that is decided again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job
from mlcd.core.options import new_goal


def goal_again(job: Job, chosen: Mapping[str, Any]) -> Goal:
    """The goal of a run that is decided again, with what is asked now."""
    if chosen.get("confidence") is not None and job.ask is not None and not job.ask.has_confidence:
        raise UserError("confidence is for jobs on machines; services and functions are certified in another way")
    return new_goal(job.goal, chosen)
