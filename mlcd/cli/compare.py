"""mlcd compare: runs side by side."""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.console import Console
from rich.markup import escape

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, open_ledger, output, print_json
from mlcd.core.errors import UserError
from mlcd.core.ledger import UNLABELLED
from mlcd.core.units import counted
from mlcd.reports.comparison import MOST_COMPARED, Comparison
from mlcd.reports.comparison import compare as compared
from mlcd.reports.comparison.document import ComparedRow
from mlcd.reports.story import Story
from mlcd.reports.view.summary import labelled, summary_of

LONGEST_CELL = 44


@click.command()
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
@output
def compare(runs: tuple[str, ...], output: str) -> None:
    """Compare runs side by side: decisions, costs, probes, job files.

    Names two to six runs. Runs of different commands share only limits and costs. Of the job files, only keys that
    differ are shown. `-o json` has all keys, and the best configuration of each run over the money spent.

    \b
    mlcd compare resnet50-1 resnet50-2
    """
    if not 2 <= len(runs) <= MOST_COMPARED:
        raise UserError(
            f"{counted(len(runs), 'run')} given; name 2 to {MOST_COMPARED}: mlcd compare resnet50-1 resnet50-2"
        )
    ledger, found = open_ledger(), []
    labels = ledger.labels()
    for name in map(ledger.find, runs):
        lines = ledger.lines(name)
        summary = summary_of(name, lines[0].written_at, ledger.account(name), ledger.is_driven(name))
        found.append((labelled(summary, labels.get(name, UNLABELLED)), Story.of(lines)))
    comparison = compared(found)
    if output == "json":
        print_json(comparison.model_dump(mode="json"))
    else:
        _show(consoles()[0], comparison)


def _show(console: Console, comparison: Comparison) -> None:
    """One table for all sections, so that columns are aligned below the names of the runs."""
    names = [run.summary.run for run in comparison.runs]
    differing = [row for row in comparison.job.rows if row.differs]
    job = comparison.job.model_copy(update={"title": "Keys in which the jobs differ", "rows": differing})
    rows: list[tuple[str, ...]] = []
    for section in (*comparison.sections, comparison.probed, job):
        rows += [("",) * (1 + len(names)), (section.title.upper(), *[""] * len(names))] if section.rows else []
        rows += list(_cells(section.rows))
        rows += [(f"and {section.left_out} more", *[""] * len(names))] if section.left_out else []
    table = plain_table(("", *map(escape, names)), ())
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    console.print(table)
    if not differing:
        console.print("The jobs do not differ.", style="dim")
    for note in comparison.notes:
        console.print(f"  -  {note}", style="yellow", markup=False)


def _cells(rows: Iterable[ComparedRow]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        yield row.name, *(_cut(cell.words) for cell in row.cells)


def _cut(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LONGEST_CELL else f"{line[: LONGEST_CELL - 2]} …"
