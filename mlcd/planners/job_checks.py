"""Shared by several planners: check and complete a job before it starts, and say how it ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlcd.core.decision import Decision
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Finish

NAMED_BY_PATH = ("recorded", "market", "local", "ray")
"""Places whose name has the path of a file or folder."""
ONE_AT_A_TIME = ("local", "ray")
"""Places where concurrent launches would share nodes and slow each other down."""


NO_PLANS_RECORDED = "a recording knows machines and no plans; leave `plan:` out, or use --on simulated"


def check_goal(job: Job, *, knee: bool = False) -> None:
    """Raise, in one line, for a goal that training does not have. `knee`: whether the knee is allowed."""
    if job.goal.objective is Objective.PER_DOLLAR:
        raise UserError("per-dollar is a goal of `mlcd serve`; training is for fastest or cheapest, or the knee")
    if job.goal.objective is Objective.KNEE and not knee:
        raise UserError("the knee is a goal of `mlcd scale`; `mlcd train` is for fastest or cheapest")


def with_absolute_path(job: Job) -> Job:
    """The job with an absolute path in its place, so that it can be resumed anywhere; one probe at a time if needed."""
    kind, _, path = job.on.partition(":")
    if path and kind in NAMED_BY_PATH:
        job = replace(job, on=f"{kind}:{Path(path).resolve()}")
    return one_at_a_time(job) if kind in ONE_AT_A_TIME else job


def one_at_a_time(job: Job) -> Job:
    """The job without concurrent probes."""
    return replace(job, search=replace(job.search, parallel=1))


def why_unmeasured(decision: Decision, history: History) -> Decision:
    """A what-if of a run that measured nothing, with that as the reason, and not a limit that is no longer asked."""
    measured = bool(history.measurements) or decision.configuration is not None
    if measured or decision.binding.startswith(("the budget", "the deadline")):
        return decision
    return replace(decision, binding="nothing was measured in this run; only a new search can tell", relaxations=())


def finish_of_run(job: Job, history: History, last: Measurement) -> Finish:
    """The finish of a job that ended by itself: successful unless it reported clearly less than its work.

    Work that an earlier launch saved while MLCD was not running was never reported, so less is accepted then.
    """
    if last.mismatch is None:
        remark = f", but {last.detail}" if last.detail else ""
        return Finish(f"the job ran to its end{remark}", last.configuration)
    if not last.mismatch.short:
        return Finish(f"the job ran to its end, but {last.mismatch.words}", last.configuration)
    if job.checkpoints and history.has_unseen_end:
        reported = f"{last.mismatch.reported:,.0f} samples, {last.mismatch.share} of the {last.mismatch.stated:,.0f}"
        more = "and may have saved more while MLCD was not running"
        return Finish(f"the job ran to its end; it reported {reported} that `work` states, {more}", last.configuration)
    return Finish(f"the job {last.mismatch.words}")
