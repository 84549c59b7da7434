"""mlcd export: the decision as a file that another tool runs."""

from __future__ import annotations

from pathlib import Path

import click

from mlcd.cli.options import open_ledger, output, print_json, run_name


@click.command()
@run_name
@click.option("--to", "target", type=click.Choice(["skypilot"]), required=True, help="The tool that will run it.")
@click.option("--file", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write here, not to stdout.")
@output
def export(run: str, target: str, file: Path | None, output: str) -> None:
    """The decision as a task file for another tool."""
    from mlcd.errors import UserError
    from mlcd.reports.skypilot import task_of, task_text

    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    task, text = task_of(name, account), task_text(name, account)
    if file is not None:
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{file}: cannot be written: {error.strerror}; choose another with --file") from error
    if output == "json":
        print_json(task)
    elif file is not None:
        click.echo(f"Wrote {file}; run it with: sky launch {file}")
    else:
        click.echo(text, nl=False)
