"""A job on functions, as it was asked for: trained once, or tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.options import new_goal, with_probe_limits
from mlcd.planners.functions.nouns import FunctionsTask, Tuning, on_functions

T = TypeVar("T", FunctionsTask, Search, Tuning)
ON = "functions"
ONLY_ON_FUNCTIONS = (
    "target_loss", "functions", "memory", "storages", "concurrency", "fresh", "trials", "eta", "epochs_per_stage",
)  # fmt: skip
NEVER_ON_FUNCTIONS = ("nodes", "instances", "parallel", "early_look", "max_hourly", "confidence")


def is_on_functions(job: Job, chosen: Mapping[str, Any]) -> bool:
    """Whether it was asked for, or else the file says so; an option that is for the other places is refused."""
    wanted = str(chosen.get("on") or job.on).partition(":")[0] == ON
    for name in NEVER_ON_FUNCTIONS if wanted else ONLY_ON_FUNCTIONS:
        if chosen.get(name):
            option = "--storage" if name == "storages" else f"--{name.replace('_', '-')}"
            where = "machines, and functions have none" if wanted else "jobs on functions: --on functions"
            raise UserError(f"{option} is for {where}")
    return wanted


def functions_job(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file as one on functions, with what was asked in place of what the file says.

    `where`: the file's name, for messages.
    """
    task = job.blocks.get(ON) or job.ask
    if not isinstance(task, FunctionsTask):
        raise UserError(f"{where}: no `functions:` block in `mlcd:`; it names the model, the data and the batch")
    task = _changed(task, chosen, "functions", "memory_mb", "storages", "concurrency")
    search = with_probe_limits(_changed(job.search, chosen, "seed", "method"), chosen)
    if search.max_hourly_usd is not None:
        raise UserError("max_hourly is for machines; functions are paid by use. What a probe may cost: --max-probe")
    if chosen.get("fresh"):
        search = replace(search, earlier=False)
    if search.method == Search().method:  # the usual one of machines: nobody has chosen one for functions
        search = replace(search, method="exact")
    on = chosen.get("on") or job.on
    loss = chosen.get("target_loss")
    target = Target("loss", loss, at_least=False) if loss is not None else job.target
    return replace(
        job,
        search=search,
        goal=_usual(new_goal(job.goal, chosen)),
        on=on if on.partition(":")[0] == ON else ON,
        target=target,
    ).asking(task)


def trained(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file, to be trained once: trials that its file may ask for are those of `mlcd tune`."""
    job = functions_job(job, chosen, where)
    return replace(job, ask=replace(on_functions(job), tuning=None))


def tuned(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file, with the trials that were asked for, or that the file asks for."""
    job = functions_job(job, chosen, where)
    task = on_functions(job)
    if task.tuning is None and chosen.get("trials") is None:
        raise UserError("how many trials? Say --trials 64, or `tuning: {trials: 64}` in the `functions:` block")
    tuning = _changed(task.tuning or Tuning(1), chosen, "trials", "eta", "epochs_per_stage")
    return replace(job, ask=replace(task, tuning=tuning), target=None)


def _usual(goal: Goal) -> Goal:
    """Where nobody says what to make small: the cost within a deadline, and else the time."""
    if goal.stated:
        return goal
    in_time = goal.deadline_s is not None and goal.budget_usd is None
    return replace(goal, objective=Objective.CHEAPEST if in_time else Objective.FASTEST)


def _changed(settings: T, chosen: Mapping[str, Any], *names: str) -> T:
    """With what was chosen of these fields."""
    options = {name: chosen.get(name.removesuffix("_mb")) for name in names}
    return replace(settings, **{name: value for name, value in options.items() if value is not None})
