"""mlcd record: measure a job on every configuration, and store the results as a recording."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from mlcd.cli.drive import RunDisplay
from mlcd.cli.messages import confirm_rental, print_note
from mlcd.cli.options import confirmed, job_file, open_ledger, output, print_answer, with_options
from mlcd.cli.planner_options import options_of
from mlcd.clouds.recording import recording_of, save_recording
from mlcd.core.backend import Purpose
from mlcd.core.errors import UserError
from mlcd.core.planner import planner_named
from mlcd.core.runs.run import start
from mlcd.core.units import counted
from mlcd.planners.form.option_parsers import parsers_of
from mlcd.planners.functions.job_from_options import ONLY_ON_FUNCTIONS
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.train.nouns import planned_training

EVERYTHING = "exhaustive"
OPTIONS = [name for name in parsers_of("train") if name not in (*ONLY_ON_FUNCTIONS, "storage")]
"""The options of `mlcd train` that are about machines."""


@click.command()
@job_file
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write the recording to.")
@with_options(options_of("train", *OPTIONS))
@confirmed
@output
def record(job_path: Path, out: Path, yes: bool, output: str, **chosen: Any) -> None:
    """Probe every configuration, and store the results as a recording.

    Searches on the recording cost nothing. Recording keeps the job's limits; options are those of `mlcd train`.

    \b
    mlcd record job.yaml --on local --out mine
    """
    job = planner_named("train").with_options(
        load_job(job_path), {**chosen, "method": chosen.get("method") or EVERYTHING}
    )
    if planned_training(job) is not None:
        raise UserError("jobs with `plan:` cannot be recorded; leave `plan:` out of the job file")
    if job.search.max_probe_usd is None:  # by default every configuration is probed
        job = replace(job, search=replace(job.search, max_probe_usd=inf))
    out.mkdir(parents=True, exist_ok=True)  # so that an unwritable folder fails now, not after hours
    ledger = open_ledger()
    display = RunDisplay(ledger, "json")
    with ExitStack() as held:
        agree = partial(confirm_rental, yes=yes)
        run = start(job, ledger, display.on_entry, display.report, held=held, agree=agree)
        print_note(run.cloud.lacks, display.printer.progress)
        held.enter_context(display.showing(run.name))
        run.search(held.enter_context(display.stopping(run)(Purpose.PROBE)))
    recording = recording_of(run.name, run.book.account)
    save_recording(recording, out)
    count = len(recording.points)
    words = f"Recorded {counted(count, 'configuration')} in {out}. Search on the recording with: --on recorded:{out}"
    print_answer(output, words, {"run": run.name, "out": str(out), "points": count})
