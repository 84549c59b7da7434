"""The command of a planner that another package adds: goal, limits, search and the planner's own options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mlcd.cli.options import confidence, duration, job_file, parsed_by, probe_limits, usd, with_options
from mlcd.cli.train import begin_file, run_options
from mlcd.cli.variables import env_option
from mlcd.core.planner import planner_named


def command_of(name: str) -> click.Command:
    """`mlcd NAME JOB`, for the planner of that name."""
    planner = planner_named(name)

    def run(job_path: Path, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any) -> int:
        return begin_file(name, job_path, chosen, decide_only, yes, output, detach=detach)

    own = [
        click.option(f"--{each.name}", metavar=each.metavar, callback=parsed_by(each.parse), help=each.help)
        for each in planner.options
    ]
    options = (
        *own,
        click.option("--goal", type=click.Choice(planner.goals), help=f"What to look for; {planner.goals[0]}."),
        click.option("--budget", metavar="USD", callback=usd, help="Dollars for everything together: 5; 'none'."),
        click.option("--deadline", metavar="TIME", callback=duration, help="Time for everything together: 2h; 'none'."),
        confidence,
        *probe_limits,
        click.option("--on", metavar="BACKEND", help="Where: simulated, recorded:DIR, local, ..."),
        click.option("--method", help="How to search."),
        click.option("--seed", type=click.IntRange(0), help="Seed of everything random; 0."),
        env_option,
        *run_options,
    )
    run.__doc__ = f"{planner.summary}\n\nOptions replace what the job file says."
    return click.command(name)(job_file(with_options(options)(run)))
