"""mlcd scale: the right number of workers and batch size, found while the job runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import duration, job_file, new_goal, usd, with_options, written
from mlcd.cli.train import begin, run_options
from mlcd.job import parse_target
from mlcd.units import parse_batches, parse_range

if TYPE_CHECKING:
    from mlcd.job import Job

scale_options = (
    click.option("--workers", metavar="RANGE", callback=written(parse_range), help="How many workers, such as 1..8."),
    click.option(
        "--batch",
        metavar="RANGE",
        callback=written(parse_batches),
        help="Global batches: 64..1024 (doubling), a list such as 96,192, or one.",
    ),
    click.option("--target", metavar="METRIC", callback=written(parse_target), help="The end: 'accuracy >= 0.97'."),
    click.option("--goal", type=click.Choice(["knee", "fastest", "cheapest"]), help="What to look for; knee."),
    click.option("--budget", metavar="USD", callback=usd, help="Dollars for everything together, such as 5; 'none'."),
    click.option("--deadline", metavar="TIME", callback=duration, help="Time for everything together: 2h; 'none'."),
    click.option(
        "--search",
        type=click.Choice(["full", "partial", "none"]),
        help="Probe every configuration, the ends (default), or none: rank by what earlier runs taught.",
    ),
    click.option(
        "--learning-rate",
        type=click.Choice(["none", "linear", "sqrt", "adascale"]),
        help="How the learning rate follows the batch; none.",
    ),
    click.option("--on", "--backend", metavar="BACKEND", help="Where: simulated, local, ray:FILE."),
    click.option("--instances", multiple=True, metavar="PATTERN", help="Instance types, such as 'c5.*'; repeatable."),
    click.option("--seed", type=click.IntRange(0), help="Seed of everything random."),
)


@click.command()
@job_file
@with_options((*scale_options, *run_options))
def scale(job_path: Path, decide_only: bool, yes: bool, output: str, **chosen: Any) -> int:
    """Find workers and batch while the job runs, then run the rest of it there."""
    return begin(elastic_job(job_path, chosen), decide_only, yes, output)


def elastic_job(path: Path, chosen: dict[str, Any]) -> Job:
    """The job of a file as an elastic one: what the command line says, then what the file says, then what is usual."""
    from mlcd.job import Elastic, LearningRate, Mode, Objective
    from mlcd.jobfile import load_job

    job = load_job(path)
    elastic = job.elastic or Elastic()
    if chosen.get("workers") is not None:
        elastic = replace(elastic, workers=chosen["workers"])
    if chosen.get("batch") is not None:
        elastic = replace(elastic, batches=chosen["batch"])
    if chosen.get("search") is not None:
        elastic = replace(elastic, mode=Mode(chosen["search"]))
    if chosen.get("learning_rate") is not None:
        elastic = replace(elastic, learning_rate=LearningRate(chosen["learning_rate"]))
    search = replace(job.search, method=f"scavenger-{elastic.mode}")
    if chosen.get("seed") is not None:
        search = replace(search, seed=chosen["seed"])
    if chosen.get("instances"):
        search = replace(search, instances=tuple(chosen["instances"]))
    usual = job.goal if job.goal.stated else replace(job.goal, objective=Objective.KNEE)
    goal = new_goal(usual, chosen)
    target = chosen.get("target") or job.target
    on = chosen.get("on") or job.on
    return replace(job, elastic=elastic, target=target, search=search, goal=goal, on=on, serverless=None)
