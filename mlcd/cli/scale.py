"""mlcd scale: finds the right number of workers and batch size while the job runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mlcd.cli.options import confidence, duration, job_file, parsed_by, probe_limits, usd, with_options
from mlcd.cli.train import begin_file, run_options
from mlcd.cli.variables import env_option
from mlcd.core.job import parse_target
from mlcd.core.units import parse_batches, parse_range
from mlcd.planners.form.words import GOALS, LEARNING_RATES, SEARCHES

scale_options = (
    click.option("--workers", metavar="RANGE", callback=parsed_by(parse_range), help="How many workers, such as 1..8."),
    click.option(
        "--batch",
        metavar="RANGE",
        callback=parsed_by(parse_batches),
        help="Global batches: 64..1024 (doubling), a list such as 96,192, or one.",
    ),
    click.option("--target", metavar="METRIC", callback=parsed_by(parse_target), help="The end: 'accuracy >= 0.97'."),
    click.option("--goal", type=click.Choice(GOALS["scale"]), help="What to look for; knee."),
    click.option("--budget", metavar="USD", callback=usd, help="Dollars for everything together, such as 5; 'none'."),
    click.option("--deadline", metavar="TIME", callback=duration, help="Time for everything together: 2h; 'none'."),
    confidence,
    *probe_limits,
    click.option(
        "--search",
        type=click.Choice(SEARCHES),
        help="Probe every configuration, the ends (default), or none: rank by what earlier runs taught.",
    ),
    click.option(
        "--learning-rate",
        type=click.Choice(LEARNING_RATES),
        help="How the learning rate follows the batch; none.",
    ),
    click.option("--on", "--backend", metavar="BACKEND", help="Where: simulated, local, ray:FILE."),
    click.option("--instances", multiple=True, metavar="PATTERN", help="Instance types, such as 'c5.*'; repeatable."),
    click.option("--seed", type=click.IntRange(0), help="Seed of everything random; 0."),
)


@click.command()
@job_file
@with_options((*scale_options, env_option, *run_options))
def scale(job_path: Path, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any) -> int:
    """Find workers and batch while the job trains, and continue there.

    The job must keep checkpoints. Options replace what its `scale:` block says.

    \b
    mlcd scale job.yaml --workers 1..8 --batch 64..1024 --target 'accuracy >= 0.97'
    """
    return begin_file("scale", job_path, chosen, decide_only, yes, output, detach=detach)
