"""`mlcd check JOB`: every mistake of a job file, one line each, in the format of compilers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from mlcd.cli.options import print_json
from mlcd.core.exit_codes import ExitCode
from mlcd.planners.jobfile.read import mistakes_in, text_of


def is_job_file(word: str) -> bool:
    """Whether it is a path rather than the name of a backend."""
    return Path(word).suffix != "" or Path(word).name != word or Path(word).is_file()


def check_job(path: Path, output: str) -> int:
    """Print every mistake; nothing is started."""
    mistakes = mistakes_in(text_of(path), path.parent)
    if output == "json":
        print_json({"file": str(path), "mistakes": [{**asdict(each), "instead": each.instead} for each in mistakes]})
    elif mistakes:
        for each in mistakes:
            click.echo(" ".join(each.as_of_compiler(path).split()))
    else:
        click.echo(f"{path}: no mistakes. See what it would do, at no cost: mlcd plan {path}")
    return ExitCode.REFUSED if mistakes else ExitCode.DONE
