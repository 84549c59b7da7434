"""mlcd curves: time against cost of everything that an elastic run could have been trained on."""

from __future__ import annotations

from pathlib import Path

import click

from mlcd.cli.options import consoles, open_ledger, output, print_json, run_name

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@run_name
@click.option("--html", "html", metavar="FILE", type=_FILE, help="Write the report, which has the picture.")
@output
def curves(run: str, html: Path | None, output: str) -> None:
    """The trade-off curve of a run of `mlcd scale`, and its knee.

    Expected time and cost of each configuration, and the best trade-offs (the Pareto boundary).

    \b
    mlcd curves last --html curve.html
    """
    from mlcd.reports.curve import curve_document, curve_of, curve_table, notes
    from mlcd.reports.html import page
    from mlcd.reports.terminal import rich_table

    ledger = open_ledger()
    lines = ledger.lines(run)
    story, curve = curve_of(lines)
    if html is not None:
        _write(html, page(lines, driven=ledger.is_driven(story.run)))
    if output == "json":
        print_json(curve_document(story, curve))
        return
    results, progress = consoles()
    table = curve_table(curve)
    results.print(rich_table(table.columns, table.rows, chosen=table.chosen))
    for note in notes(curve):
        results.print(note, style="dim", highlight=False)
    if html is not None:
        progress.print(f"Wrote {html}; open it in a browser.", highlight=False, markup=False)


def _write(path: Path, content: str) -> None:
    from mlcd.core.errors import UserError

    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another with --html") from error
