"""mlcd label: a run's project, tags and note, and whether it is archived."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

import click

from mlcd.cli.options import open_ledger, output, print_answer
from mlcd.cli.server import chosen_server
from mlcd.cli.team import command_line_user
from mlcd.core.ledger import UNLABELLED, Labels, LabelUpdate, Ledger
from mlcd.core.ledger.labels import UNCHANGED
from mlcd.reports.words import label_words
from mlcd.service.team.administration import Audit


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--project", metavar="WORD", help="Set the project; '' removes it.")
@click.option("--tag", "tags", metavar="WORD", multiple=True, help="Add a tag; repeatable.")
@click.option("--untag", "untags", metavar="WORD", multiple=True, help="Remove a tag; repeatable.")
@click.option("--note", metavar="TEXT", help="Set the note, in plain text; '' removes it.")
@click.option(
    "--archive/--unarchive", "archived", default=None, help="Leave the runs out of lists, or list them again."
)
@output
def label(
    runs: tuple[str, ...],
    project: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    note: str | None,
    archived: bool | None,
    output: str,
) -> None:
    """Show or set the project, tags and note of runs; archive runs.

    Without an option it shows the labels. A run that is active cannot be archived. In a team, members can label their
    own runs, and admins all runs.

    \b
    mlcd label resnet50-2 --project vision --tag nightly
    mlcd label resnet50-1 resnet50-2 --archive
    """
    change, ledger = LabelUpdate.of(project, tags, untags, note, archived), open_ledger()
    if change == UNCHANGED:
        known = ledger.labels()
        _show({name: known.get(name, UNLABELLED) for name in map(ledger.find, runs)}, output)
        return
    relabel = ledger.label if chosen_server() is not None else partial(_on_database, ledger)
    names = [ledger.find(run) if run == "last" else run for run in runs]
    _show({name: relabel(name, change) for name in names}, output)


def _on_database(ledger: Ledger, run: str, change: LabelUpdate) -> Labels:
    """On a team's database: whoever can open it may label every run; it is written to the audit log."""
    if ledger.database.dialect == "sqlite":
        return ledger.label(run, change)
    labels = ledger.label(run, change, who := command_line_user())
    Audit(ledger.database, lambda: datetime.now(UTC)).write(who, "label", run, "ok", change.words)
    return labels


def _show(labelled: dict[str, Labels], output: str) -> None:
    lines = []
    for run, labels in labelled.items():
        words = ", ".join(filter(None, [label_words(labels), "archived" if labels.archived else ""]))
        lines += [f"{run}: {words or 'no labels'}", *(f"  {line}" for line in labels.note.splitlines())]
    document = {"runs": [{"run": run, **asdict(labels)} for run, labels in labelled.items()]}
    print_answer(output, "\n".join(lines), document)
