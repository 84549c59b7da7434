"""mlcd tune: hyperparameter search by successive halving on functions, with a plan for each stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mlcd.cli.functions import allocation_options, tuning_options
from mlcd.cli.options import goal_options, job_file, max_probe, with_options
from mlcd.cli.train import begin_file, run_options

tune_options = (
    *tuning_options,
    *goal_options,
    max_probe,
    *allocation_options,
    click.option("--on", metavar="BACKEND", help="Where: functions, functions:simulated, functions:aws_lambda."),
    click.option("--method", help="How to plan: exact, greedy, lambdaml, siren, cirrus, fixed."),
    click.option("--seed", type=click.IntRange(0), help="Seed of everything random; 0."),
)


@click.command()
@job_file
@with_options((*tune_options, *run_options))
def tune(job_path: Path, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any) -> int:
    """Search hyperparameters on functions, by halving.

    All trials train for some epochs, and the better half continues. Options override the job file.

    \b
    mlcd tune job.yaml --trials 64 --budget 5
    mlcd tune job.yaml --trials 64 --deadline 2h --decide-only
    """
    return begin_file("tune", job_path, chosen, decide_only, yes, output, detach=detach)
