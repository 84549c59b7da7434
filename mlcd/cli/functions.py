"""Jobs on functions, as the command line asks for them: options, and the job they make of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import new_goal, written

if TYPE_CHECKING:
    from mlcd.job import Goal, Job

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
}


def _storages(text: str) -> tuple[str, ...]:
    from mlcd.jobfile.functions import storage_names

    return storage_names(text)


def _functions(text: str) -> tuple[int, int]:
    from mlcd.jobfile.functions import function_range

    return function_range(text)


def _memory(text: str) -> tuple[int, int]:
    from mlcd.jobfile.functions import memory_range

    return memory_range(text)


allocation_options = (
    click.option(
        "--functions", metavar="RANGE", callback=written(_functions), help="On functions: how many, such as 1..50."
    ),
    click.option(
        "--memory", metavar="RANGE", callback=written(_memory), help="On functions: MB of each, such as 512..1769."
    ),
    click.option(
        "--storage",
        "storages",
        metavar="NAMES",
        callback=written(_storages),
        help="On functions: where they meet: s3, dynamodb, elasticache, vm-ps; several with commas.",
    ),
    click.option("--concurrency", type=click.IntRange(1), help="On functions: how many the account runs at once."),
    click.option("--fresh", is_flag=True, help="On functions: calibrate again, whatever earlier runs have stored."),
)
tuning_options = (
    click.option("--trials", type=click.IntRange(1), help="Hyperparameter settings to try, such as 64."),
    click.option("--eta", type=click.IntRange(2), help="One trial of so many goes on after each stage; 2."),
    click.option("--epochs-per-stage", type=click.IntRange(1), help="Epochs of each trial in a stage; 2."),
)
target_loss = click.option("--target-loss", type=float, help="On functions: the loss that ends the training.")


def is_on_functions(path: Path, chosen: dict[str, Any]) -> bool:
    """Whether the command line, or else the file, says so; an option that is for the other places is refused."""
    from mlcd.errors import UserError
    from mlcd.jobfile import load_job

    there = str(chosen.get("on") or load_job(path).on).partition(":")[0] == ON
    wrong = [option for name, option in (NEVER_THERE if there else ONLY_THERE).items() if chosen.get(name)]
    if wrong:
        where = "machines, and functions have none" if there else "jobs on functions: --on functions"
        raise UserError(f"{wrong[0]} is for {where}")
    return there


def functions_job(path: Path, chosen: dict[str, Any]) -> Job:
    """The job of a file as one on functions, with what the command line says in place of what the file says."""
    from mlcd.errors import UserError
    from mlcd.job import Search, Target
    from mlcd.jobfile import load_job

    job = load_job(path)
    if job.serverless is None:
        raise UserError(f"{path}: no `functions:` block in `mlcd:`; it names the model, the data and the batch")
    names = ("functions", "memory", "storages", "concurrency")
    fields = {"memory": "memory_mb"}
    changes = {fields.get(name, name): chosen[name] for name in names if chosen.get(name) is not None}
    serverless = replace(job.serverless, **changes)
    told = {name: chosen[name] for name in ("seed", "method") if chosen.get(name) is not None}
    search = replace(job.search, **told)
    if chosen.get("fresh"):
        search = replace(search, earlier=False)
    if search.method == Search().method:  # the usual one of machines: nobody has chosen one for functions
        search = replace(search, method="exact")
    on = chosen.get("on") or job.on
    loss = chosen.get("target_loss")
    target = Target("loss", loss, at_least=False) if loss is not None else job.target
    return replace(
        job,
        serverless=serverless,
        search=search,
        goal=_usual(new_goal(job.goal, chosen)),
        on=on if on.partition(":")[0] == ON else ON,
        target=target,
        elastic=None,
    )


def trained(path: Path, chosen: dict[str, Any]) -> Job:
    """The job of a file, to be trained once: trials that its file may ask for are those of `mlcd tune`."""
    job = functions_job(path, chosen)
    serverless = replace(job.serverless, tuning=None) if job.serverless is not None else None
    return replace(job, serverless=serverless)


def tuned(path: Path, chosen: dict[str, Any]) -> Job:
    """The job of a file, with the trials that the command line or the file asks for."""
    from mlcd.errors import UserError
    from mlcd.serverless import Tuning

    job = functions_job(path, chosen)
    tuning = job.serverless.tuning if job.serverless is not None else None
    if job.serverless is None or (tuning is None and chosen.get("trials") is None):
        raise UserError("how many trials? Say --trials 64, or `tuning: {trials: 64}` in the `functions:` block")
    names = ("trials", "eta", "epochs_per_stage")
    told = {name: chosen[name] for name in names if chosen.get(name) is not None}
    tuning = replace(tuning or Tuning(1), **told)
    return replace(job, serverless=replace(job.serverless, tuning=tuning), target=None)


def _usual(goal: Goal) -> Goal:
    """Where nobody says what to make small: the cost within a deadline, and else the time."""
    from mlcd.job import Objective

    if goal.stated:
        return goal
    in_time = goal.deadline_s is not None and goal.budget_usd is None
    return replace(goal, objective=Objective.CHEAPEST if in_time else Objective.FASTEST)
