"""mlcd report: one file to look at, to print and to send."""

from __future__ import annotations

from pathlib import Path

import click

from mlcd.cli.options import open_ledger, output, print_json, run_name
from mlcd.cli.runs import boundary_points


@click.command()
@run_name
@click.option("--to", "to", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; RUN.html.")
@output
def report(run: str, to: Path | None, output: str) -> None:
    """Write one self-contained HTML page about a run.

    \b
    mlcd report last --to report.html
    """
    from mlcd.core.errors import UserError
    from mlcd.reports.html import page

    ledger = open_ledger()
    lines = ledger.lines(run)
    name = lines[0].run
    path = to or Path(f"{name}.html")
    try:
        content = page(lines, boundary_points(ledger.account(run)), ledger.is_driven(name))
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another with --to") from error
    if output == "json":
        print_json({"run": name, "path": str(path), "bytes": path.stat().st_size})
        return
    click.echo(f"Wrote {path} ({path.stat().st_size / 1000:.0f} kB); open it in a browser.")
