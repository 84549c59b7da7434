"""mlcd report, mlcd curves: a run as an HTML file, and its trade-off curve as a table."""

from __future__ import annotations

from pathlib import Path

import click

from mlcd.cli.options import FILE, consoles, open_ledger, output, print_answer, print_json, run_name, write_file
from mlcd.cli.runs import boundary_points
from mlcd.reports.curve import curve_document, curve_of, curve_table, notes
from mlcd.reports.html import page
from mlcd.reports.terminal_tables import rich_table


@click.command()
@run_name
@click.option("--to", "to", type=FILE, help="The file to write. Default: RUN.html.")
@output
def report(run: str, to: Path | None, output: str) -> None:
    """Write the page of a run as one HTML file.

    \b
    mlcd report last --to report.html
    """
    ledger = open_ledger()
    lines = ledger.lines(run)
    name = lines[0].run
    path = to or Path(f"{name}.html")
    write_file(path, page(lines, boundary_points(ledger.account(run)), ledger.is_driven(name)), "--to")
    size = path.stat().st_size
    words = f"Wrote {path} ({size / 1000:.0f} kB); open it in a browser."
    print_answer(output, words, {"run": name, "path": str(path), "bytes": size})


@click.command()
@run_name
@click.option(
    "--html", "html", metavar="FILE", type=FILE, help="Also write the HTML report, which has the curve as a chart."
)
@output
def curves(run: str, html: Path | None, output: str) -> None:
    """Show time against cost of each configuration of a run of `mlcd scale`.

    The table marks the best trade-offs (the Pareto boundary) and the knee, beyond which more money buys little speed.

    \b
    mlcd curves last --html curve.html
    """
    ledger = open_ledger()
    lines = ledger.lines(run)
    story, curve = curve_of(lines)
    if html is not None:
        write_file(html, page(lines, driven=ledger.is_driven(story.run)), "--html")
    if output == "json":
        print_json(curve_document(story, curve))
        return
    results, progress = consoles()
    table = curve_table(curve)
    results.print(rich_table(table.columns, table.rows, chosen=table.chosen))
    for note in notes(curve):
        results.print(note, style="dim")
    if html is not None:
        progress.print(f"Wrote {html}; open it in a browser.", markup=False)
