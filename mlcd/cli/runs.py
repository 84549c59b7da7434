"""mlcd runs, show, ledger: print what the ledger has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.markup import escape

from mlcd.cli.console import plain_table
from mlcd.cli.machine_usage import machine_usage
from mlcd.cli.options import consoles, open_ledger, output, print_json, run_name
from mlcd.core.backend import Provenance
from mlcd.core.errors import LedgerCorrupt
from mlcd.core.ledger import UNLABELLED, Account, Labels, Ledger, Line
from mlcd.core.ledger.entries import to_json
from mlcd.core.planner import planner_of
from mlcd.core.units import format_duration, format_usd, parse_duration
from mlcd.planners.functions.nouns import Planned, plan_of
from mlcd.planners.serve.nouns import serving_task
from mlcd.reports.document import run_document
from mlcd.reports.terminal_run import Narrator, ledger_table, show_decision, show_outcome
from mlcd.reports.terminal_tables import show_additions
from mlcd.reports.view.run_filter import Archived, RunFilter
from mlcd.reports.view.summary import labelled, summary_of
from mlcd.reports.words import goal_words, label_words
from mlcd.service.team.administration import moment

LONG_PARTS = ("probes", "trials", "refused", "stages", "epochs", "boundary", "operators", "facts", "tables", "figures")
"""Long parts of a run's document, which a list of runs leaves out."""
DAMAGED = "damaged"
STATUSES = ("searching", "decided", "infeasible", "running", "finished", "failed", "stopped", "interrupted")


def _when(ctx: click.Context, param: click.Parameter, text: str | None) -> datetime | None:
    """A date, or a duration before now."""
    if text is None:
        return None
    with suppress(ValueError):
        return datetime.now(UTC) - timedelta(seconds=parse_duration(text))
    return moment(text, end=param.name == "until")


@click.command()
@click.option(
    "--status", type=click.Choice(STATUSES), help="Only runs with this status; interrupted: their process is gone."
)
@click.option("--project", metavar="WORD", help="Only runs of this project.")
@click.option(
    "--tag",
    "tags",
    metavar="WORD",
    multiple=True,
    help="Only runs with this tag; repeatable, for runs with all of them.",
)
@click.option(
    "--since",
    metavar="WHEN",
    callback=_when,
    help="Only runs that began at this date or later; or within this time: 2026-11-01, 7d.",
)
@click.option(
    "--until",
    metavar="WHEN",
    callback=_when,
    help="Only runs that began by the end of this date; or before this time: 2026-11-01, 7d.",
)
@click.option("--archived", is_flag=True, help="Only archived runs, which are left out otherwise.")
@output
def runs(
    status: str | None,
    project: str | None,
    tags: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    archived: bool,
    output: str,
) -> None:
    """List all runs: goal, status, choice and cost.

    \b
    mlcd runs --status interrupted
    mlcd runs --project vision --tag nightly --since 7d
    """
    which: Archived = "only" if archived else "no"
    only = RunFilter(status, project=project, tags=tags, since=since, until=until, archived=which)
    ledger = open_ledger()
    begun = ledger.runs()
    labels = ledger.labels() if begun else {}
    lines_of, damaged = _read_all(ledger, begun)
    if begun and not lines_of:
        raise damaged[begun[0]]
    damaged = {name: damaged[name] for name in damaged if labels.get(name, UNLABELLED).archived == archived}
    accounts = {name: Account.replay((line.entry, line.elapsed_s) for line in lines_of[name]) for name in lines_of}
    found = {
        name for name in lines_of if _passes_filter(ledger, only, lines_of[name], accounts[name], labels.get(name))
    }
    if only == RunFilter(archived=which):  # only the labels of a damaged run are known
        found |= damaged.keys()
    names = [name for name in begun if name in found]
    if output == "json":
        documents = {
            name: run_document(lines_of[name]) | asdict(labels.get(name, UNLABELLED))
            for name in names
            if name in lines_of
        }
        documents |= {name: {"run": name, "status": DAMAGED, "because": str(error)} for name, error in damaged.items()}
        brief = [{key: documents[name][key] for key in documents[name] if key not in LONG_PARTS} for name in names]
        print_json({"runs": brief})
    elif begun and not names:
        consoles()[0].print("No run passes these filters. All runs: mlcd runs, and mlcd runs --archived")
    else:
        _print_runs(ledger, names, lines_of, accounts, labels)
    if damaged:  # an incomplete list is an error, so stderr says why
        raise damaged[min(damaged, key=begun.index)]


def _read_all(ledger: Ledger, names: Sequence[str]) -> tuple[dict[str, list[Line]], dict[str, LedgerCorrupt]]:
    """The entries of each run; of a damaged one, what is wrong with it."""
    lines_of: dict[str, list[Line]] = {}
    damaged: dict[str, LedgerCorrupt] = {}
    for name in names:
        try:
            lines_of[name] = ledger.lines(name)
        except LedgerCorrupt as error:
            damaged[name] = error
    return lines_of, damaged


def _passes_filter(ledger: Ledger, only: RunFilter, lines: list[Line], account: Account, labels: Labels | None) -> bool:
    known, run = labels or UNLABELLED, lines[0].run
    driven = (only.status is not None or known.archived) and ledger.is_driven(run)
    return only.passes(labelled(summary_of(run, lines[0].written_at, account, driven), known))


@click.command()
@run_name
@output
def show(run: str, output: str) -> None:
    """Show a run: its probes, its decision, its outcome.

    \b
    mlcd show last
    """
    ledger = open_ledger()
    lines, account = ledger.lines(run), ledger.account(run)
    if output == "json":
        print_json(run_document(lines, boundary_points(account)))
        return
    results, _ = consoles()
    narrate = Narrator(results, epochs=False)  # epochs of functions are shown as a table
    for line in lines:
        narrate(line)
    if account.decision is not None:
        show_decision(results, account, account.decision, account.job.goal)
    show_additions(results, planner_of(account.job).additions(account))
    show_additions(results, machine_usage(lines[0].run))
    show_outcome(results, account)
    results.print(f"Status: {_status(ledger, run, account)}")


@click.command()
@run_name
@click.option("--reconcile", is_flag=True, help="Compare each launch with what the cloud says it cost.")
@click.option(
    "--bill",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --reconcile: a CSV file exported from AWS's cost data, with the tag `mlcd`.",
)
@output
def ledger(run: str, reconcile: bool, bill: Path | None, output: str) -> None:
    """List all that a run did, in order: each launch, its reason and its cost.

    \b
    mlcd ledger last
    mlcd ledger last --reconcile --bill costs.csv
    """
    if bill is not None and not reconcile:
        raise click.UsageError("--bill needs --reconcile")
    if reconcile:
        from mlcd.cli.reconcile import show_reconciled

        show_reconciled(open_ledger(), run, bill, output)
        return
    lines = open_ledger().lines(run)
    if output == "json":
        entries = [
            {
                "seq": line.seq,
                "written_at": line.written_at.isoformat(),
                "elapsed_s": line.elapsed_s,
                **json.loads(to_json(line.entry)),
            }
            for line in lines
        ]
        print_json({"run": lines[0].run, "entries": entries})
    else:
        consoles()[0].print(ledger_table(lines))


def boundary_points(account: Account) -> tuple[Planned, ...]:
    """The boundary from which the plan of a run on functions was chosen; computed from the calibration, not stored."""
    if account.decision is None or (calibration := plan_of(account.decision).calibration) is None:
        return ()
    from mlcd.planners.functions.prepare import boundary_of  # no other run waits for SciPy

    return boundary_of(account.job, calibration)


def _print_runs(
    ledger: Ledger,
    names: Sequence[str],
    lines_of: Mapping[str, list[Line]],
    accounts: Mapping[str, Account],
    labels: Mapping[str, Labels],
) -> None:
    """Print a row for each run; those without lines are damaged."""
    results, _ = consoles()
    if not names:
        results.print("No runs yet. Start one: mlcd train JOB, mlcd scale JOB, or mlcd serve MODEL")
        return
    totals = _spent_by_provenance(accounts[name] for name in names if name in accounts)
    table = plain_table(("NAME", "STARTED (UTC)", "CLOUD", "GOAL", "STATUS"), (), show_footer=True, footer_style="bold")
    table.add_column("TRIED", justify="right")
    table.add_column("CHOSEN", no_wrap=True, footer="\n".join(f"total, {place}" for place in totals))
    table.add_column("TIME", justify="right", no_wrap=True)
    table.add_column("COST", justify="right", no_wrap=True, footer="\n".join(map(format_usd, totals.values())))
    words = {name: label_words(labels[name]) for name in names if name in labels}
    if any(words.values()):
        table.add_column("LABELS", no_wrap=True)
    for name in names:
        cells: tuple[str, ...]
        if name in lines_of:
            cells = _cells(name, lines_of[name][0].written_at, accounts[name], _status(ledger, name, accounts[name]))
        else:
            cells = (name, "-", "-", "-", f"{DAMAGED}: restore the ledger from a copy", "-", "-", "-", "-")
        table.add_row(*map(escape, cells), *([escape(words.get(name, ""))] if any(words.values()) else []))
    results.print(table)


def _spent_by_provenance(accounts: Iterable[Account]) -> dict[str, float]:
    """Dollars by provenance: real money and simulated dollars are never added."""
    totals: dict[Provenance, float] = {}
    for account in accounts:
        totals[account.provenance] = totals.get(account.provenance, 0.0) + account.history.spent_usd
    return {str(place): totals[place] for place in reversed(Provenance) if place in totals}


def _cells(name: str, started_at: datetime, account: Account, status: str) -> tuple[str, ...]:
    job, decision, history = account.job, account.decision, account.history
    return (
        name,
        started_at.strftime("%Y-%m-%d %H:%M"),
        str(account.provenance),
        goal_words(job.goal, job.target, serving_task(job)),
        status,
        str(len(history.measurements)),
        str(decision.configuration) if decision is not None and decision.configuration is not None else "-",
        format_duration(history.elapsed_s),
        format_usd(history.spent_usd),
    )


def _status(ledger: Ledger, run: str, account: Account) -> str:
    """The run's status, with a note if its process is gone."""
    if account.status in ("searching", "running") and not ledger.is_driven(ledger.find(run)):
        return f"{account.status}, but its process is gone: mlcd resume {run}"
    return str(account.status)
