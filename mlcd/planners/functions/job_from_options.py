"""Make a job on functions, for training or tuning, from a job file and the options of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.options import new_goal, with_probe_limits
from mlcd.planners.functions.nouns import FunctionsTask, Tuning, functions_task

T = TypeVar("T", FunctionsTask, Search, Tuning)
ON = "functions"
ONLY_ON_FUNCTIONS = (
    "target_loss", "functions", "memory", "storages", "concurrency", "fresh", "trials", "eta", "epochs_per_stage",
)  # fmt: skip
NEVER_ON_FUNCTIONS = ("nodes", "instances", "parallel", "early_look", "max_hourly", "confidence")


def is_on_functions(job: Job, chosen: Mapping[str, Any]) -> bool:
    """Whether the options, or else the job file, name functions. Options that do not apply there are refused."""
    wanted = str(chosen.get("on") or job.on).partition(":")[0] == ON
    for name in NEVER_ON_FUNCTIONS if wanted else ONLY_ON_FUNCTIONS:
        if chosen.get(name):
            option = "--storage" if name == "storages" else f"--{name.replace('_', '-')}"
            where = "machines, and functions have none" if wanted else "jobs on functions: --on functions"
            raise UserError(f"{option} is for {where}")
    return wanted


def functions_job(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of a file as one on functions; options override the file. `where`: the file's name, for messages."""
    task = job.blocks.get(ON) or job.ask
    if not isinstance(task, FunctionsTask):
        raise UserError(f"{where}: no `functions:` block in `mlcd:`; it names the model, the data and the batch")
    task = _with_options(task, chosen, "functions", "memory_mb", "storages", "concurrency")
    search = with_probe_limits(_with_options(job.search, chosen, "seed", "method"), chosen)
    if search.max_hourly_usd is not None:
        raise UserError("max_hourly is for machines; functions are paid by use. To limit a probe, use --max-probe")
    if chosen.get("fresh"):
        search = replace(search, earlier=False)
    if search.method == Search().method:  # the default for machines, so none was chosen for functions
        search = replace(search, method="exact")
    on = chosen.get("on") or job.on
    loss = chosen.get("target_loss")
    target = Target("loss", loss, at_least=False) if loss is not None else job.target
    return replace(
        job,
        search=search,
        goal=_with_default_objective(new_goal(job.goal, chosen)),
        on=on if on.partition(":")[0] == ON else ON,
        target=target,
    ).asking(task)


def training_job(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of `mlcd train`: one training, without the trials that the file may state for `mlcd tune`."""
    job = functions_job(job, chosen, where)
    return replace(job, ask=replace(functions_task(job), tuning=None))


def tuning_job(job: Job, chosen: Mapping[str, Any], where: str) -> Job:
    """The job of `mlcd tune`, with the trials of the options or else of the file."""
    job = functions_job(job, chosen, where)
    task = functions_task(job)
    if task.tuning is None and chosen.get("trials") is None:
        raise UserError("how many trials? Say --trials 64, or `tuning: {trials: 64}` in the `functions:` block")
    tuning = _with_options(task.tuning or Tuning(1), chosen, "trials", "eta", "epochs_per_stage")
    return replace(job, ask=replace(task, tuning=tuning), target=None)


def _with_default_objective(goal: Goal) -> Goal:
    """The goal; without a stated objective, cheapest if there is only a deadline, else fastest."""
    if goal.stated:
        return goal
    in_time = goal.deadline_s is not None and goal.budget_usd is None
    return replace(goal, objective=Objective.CHEAPEST if in_time else Objective.FASTEST)


def _with_options(settings: T, chosen: Mapping[str, Any], *names: str) -> T:
    """The settings with those of these fields that an option sets."""
    options = {name: chosen.get(name.removesuffix("_mb")) for name in names}
    return replace(settings, **{name: value for name, value in options.items() if value is not None})
