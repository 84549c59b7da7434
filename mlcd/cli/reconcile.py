"""Compare the ledger with the cloud's bill: after every run, and for `mlcd ledger --reconcile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, print_json
from mlcd.core.backend import ReportsBills
from mlcd.core.errors import BackendError, WrongState
from mlcd.core.ledger import Ledger, Line, Settled, Started, Voided
from mlcd.core.place import cloud
from mlcd.core.runs.run import Run
from mlcd.core.units import format_usd

if TYPE_CHECKING:
    from mlcd.reports.reconcile import Reconciled  # needed only for runs with a bill


def show_reconciled(ledger: Ledger, run: str, bill: Path | None, output: str) -> None:
    """Print the cost of each launch by the ledger and by the cloud. `bill`: a file to read instead of asking it."""
    lines = ledger.lines(run)
    first = lines[0].entry
    assert isinstance(first, Started)
    backend = cloud(first.on, first.job).backend
    if not isinstance(backend, ReportsBills):
        raise WrongState(f"run '{lines[0].run}' ran on {first.on}, which sends no bill")
    rows, source = reconciled(lines, backend, bill), backend.bill_source if bill is None else str(bill)
    if output == "json":
        launches = [{**asdict(row), "differs": row.differs} for row in rows]
        print_json({"run": lines[0].run, "source": source, "launches": launches})
        return
    results = consoles()[0]
    results.print(_table(rows))
    results.print(f"Costs of the cloud: {source}.")


def reconciled(lines: Sequence[Line], backend: ReportsBills, bill: Path | None) -> list[Reconciled]:
    """The launches of a run, with the cost by the ledger and by the cloud."""
    from mlcd.reports.reconcile import read_aws_export, reconcile

    labels = [line.entry.launch.label for line in lines if isinstance(line.entry, Settled | Voided)]
    if bill is None:
        return reconcile(lines, backend.billed_usd(labels))
    tagged = read_aws_export(bill)
    names = {label: backend.name(label) for label in labels}
    return reconcile(lines, {label: tagged[name] for label, name in names.items() if name in tagged})


def bill_note(run: Run) -> str:
    """A line that compares the run's cost with the cloud's bill; empty if the cloud sends none."""
    backend, lines = run.cloud.backend, run.ledger.lines(run.name)
    if not isinstance(backend, ReportsBills) or not any(isinstance(line.entry, Settled) for line in lines):
        return ""
    from mlcd.reports.reconcile import total

    more = f"mlcd ledger {run.name} --reconcile"
    try:
        both = total(reconciled(lines, backend, None))
    except BackendError as error:
        return f"The cloud's bill could not be read ({error}). Try later: {more}"
    usd = f"ledger {format_usd(both.ledger_usd)}, cloud {format_usd(both.cloud_usd or 0.0)}"
    return f"Bill: {usd}{f'; {both.words}' if both.words else ''} ({backend.bill_source}). By launch: {more}"


def _table(rows: Sequence[Reconciled]) -> Table:
    from mlcd.reports.reconcile import total

    table = plain_table(("LAUNCH", "CONFIGURATION"), ("LEDGER", "CLOUD"))
    table.add_column("DIFFERENCE")
    for row in (*rows, total(rows)):
        cloud_usd = "-" if row.cloud_usd is None else format_usd(row.cloud_usd)
        table.add_row(row.label, row.configuration, format_usd(row.ledger_usd), cloud_usd, row.words)
    return table
