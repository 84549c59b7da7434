"""A job on functions, as it was asked for: trained once, or tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.options import new_goal, with_probe_limits
from mlcd.planners.functions.nouns import FunctionsTask, Tuning

ON = "functions"
ONLY_THERE = {
    "target_loss": "--target-loss",
    "functions": "--functions",
    "memory": "--memory",
    "storages": "--storage",
    "concurrency": "--concurrency",
    "fresh": "--fresh",
    "trials": "--trials",
    "eta": "--eta",
    "epochs_per_stage": "--epochs-per-stage",
}
NEVER_THERE = {
    "nodes": "--nodes",
    "instances": "--instances",
    "parallel": "--parallel",
    "early_look": "--early-look",
    "max_hourly": "--max-hourly",
    "confidence": "--confidence",
}


def is_on_functions(job: Job, chosen: Mapping[str, Any]) -> bool:
    """Whether it was asked for, or else the file says so; an option that is for the other places is refused."""
    there = str(chosen.get("on") or job.on).partition(":")[0] == ON
    wrong = [option for name, option in (NEVER_THERE if there else ONLY_THERE).items() if chosen.get(name)]
    if wrong:
        where = "machines, and functions have none" if there else "jobs on functions: --on functions"
        raise UserError(f"{wrong[0]} is for {where}")
    return there


def functions_job(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file as one on functions, with what was asked in place of what the file says.

    `where`: the file's name, for messages.
    """
    task = job.blocks.get(ON) or job.ask
    if not isinstance(task, FunctionsTask):
        raise UserError(f"{where}: no `functions:` block in `mlcd:`; it names the model, the data and the batch")
    names = ("functions", "memory", "storages", "concurrency")
    fields = {"memory": "memory_mb"}
    changes = {fields.get(name, name): chosen[name] for name in names if chosen.get(name) is not None}
    task = replace(task, **changes)
    told = {name: chosen[name] for name in ("seed", "method") if chosen.get(name) is not None}
    search = with_probe_limits(replace(job.search, **told), chosen)
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
    assert isinstance(job.ask, FunctionsTask)
    return replace(job, ask=replace(job.ask, tuning=None))


def tuned(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file, with the trials that were asked for, or that the file asks for."""
    job = functions_job(job, chosen, where)
    task = job.ask
    assert isinstance(task, FunctionsTask)
    if task.tuning is None and chosen.get("trials") is None:
        raise UserError("how many trials? Say --trials 64, or `tuning: {trials: 64}` in the `functions:` block")
    names = ("trials", "eta", "epochs_per_stage")
    told = {name: chosen[name] for name in names if chosen.get(name) is not None}
    tuning = replace(task.tuning or Tuning(1), **told)
    return replace(job, ask=replace(task, tuning=tuning), target=None)


def _usual(goal: Goal) -> Goal:
    """Where nobody says what to make small: the cost within a deadline, and else the time."""
    if goal.stated:
        return goal
    in_time = goal.deadline_s is not None and goal.budget_usd is None
    return replace(goal, objective=Objective.CHEAPEST if in_time else Objective.FASTEST)
