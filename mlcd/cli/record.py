"""mlcd record: measure a job on every configuration, and write a recording."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from mlcd.cli.confirm import agree_to_rent
from mlcd.cli.options import consoles, job_file, job_options, open_ledger, output, print_json, with_options

EVERYTHING = "exhaustive"


@click.command()
@job_file
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder of the recording.")
@with_options(job_options)
@click.option("-y", "--yes", is_flag=True, help="Spend real money without asking.")
@output
def record(job_path: Path, out: Path, yes: bool, output: str, **chosen: Any) -> None:
    """Probe every configuration, and write a recording of it.

    Searches can then be tried on it at no cost. It stays within the limits; options as of `mlcd train`.

    \b
    mlcd record job.yaml --on local --out mine
    """
    from mlcd.cli.interrupt import stop_on_ctrl_c
    from mlcd.cli.live import Live
    from mlcd.cli.messages import print_note
    from mlcd.clouds.recording import recording_of, save_recording
    from mlcd.core.planner import planner_named
    from mlcd.core.runs.run import start
    from mlcd.core.units import counted
    from mlcd.planners.jobfile.read import load_job
    from mlcd.reports.text import Narrator

    job = planner_named("train").asked(load_job(job_path), {**chosen, "method": chosen.get("method") or EVERYTHING})
    if job.search.max_probe_usd is None:  # by default every configuration is probed
        job = replace(job, search=replace(job.search, max_probe_usd=inf))
    out.mkdir(parents=True, exist_ok=True)  # an unwritable folder fails now, not after hours
    ledger = open_ledger()
    results, progress = consoles()
    live = Live(progress, ledger)
    with ExitStack() as held:
        agree = partial(agree_to_rent, yes=yes)
        run = start(job, ledger, live.listener(Narrator(progress)), live.report, held=held, agree=agree)
        print_note(run.cloud.lacks, progress)
        held.enter_context(live.showing(run.name))
        run.search(held.enter_context(stop_on_ctrl_c(progress, "what is being probed")))
    recording = recording_of(run.name, run.book.account)
    save_recording(recording, out)
    if output == "json":
        print_json({"run": run.name, "out": str(out), "points": len(recording.points)})
        return
    results.print(
        f"{counted(len(recording.points), 'configuration')} in {out}. Search on it with: --on recorded:{out}",
        highlight=False,
        markup=False,
    )
