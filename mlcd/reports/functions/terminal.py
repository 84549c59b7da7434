"""What a terminal shows of a job on functions: the plan beside other plans, the boundary, the run, the calibration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.backend import Provenance
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Started
from mlcd.planners.functions.nouns import Planned, on_functions, plan_of
from mlcd.reports.functions import cells
from mlcd.reports.functions.rows import best_trial, brief, epoch_rows, folded, marks, stage_rows
from mlcd.reports.functions.words import (
    basis_words,
    chosen_plan,
    decision_sentence,
    plan_name,
    source_words,
    workload_words,
)


def first_words(started: Started) -> str:
    """'live, exact: lr on higgs (11M samples, 2,520 MB), 16,384 trials in 14 stages'."""
    return f"{started.provenance}, {started.job.search.method}: {workload_words(on_functions(started.job))}"


def show_plan(
    console: Console,
    job: Job,
    decision: Decision,
    boundary: Sequence[Planned] = (),
    provenance: Provenance = Provenance.LIVE,
) -> None:
    """The boundary, the plan, the others beside it, what they rest on. `provenance`: of the calibration."""
    plan, plans, calibration = chosen_plan(decision), plan_of(decision).plans, plan_of(decision).calibration
    basis = basis_words(calibration, provenance)
    if boundary:
        used, shown, named = (
            {each.allocation for each in plan.stages} if plan else set(),
            brief(boundary),
            marks(boundary),
        )
        rows = [cells.boundary_cells(point, named.get(point.allocation, "")) for point in shown]
        chosen = [i for i, point in enumerate(shown) if point.allocation in used]
        _show(console, f"Boundary, one epoch ({basis}): {len(boundary):,} points", cells.BOUNDARY, rows, bold=chosen)
    if plan is not None:
        rows = [cells.plan_cells(i, each) for i, each in enumerate(plan.stages, 1)]
        _show(console, f"Plan, {plan_name(plan.method)} ({basis})", cells.PLAN, rows, cells.plan_total(plan))
    if plans:
        rows = cells.comparison_cells(plans, plan)
        chosen = [i for i, row in enumerate(rows) if row[-1]]
        _show(console, f"Beside other plans ({basis})", cells.COMPARISON, rows, bold=chosen)
    if calibration is not None:
        title = f"Calibration: {source_words(calibration, provenance)}"
        _show(console, title, cells.CALIBRATION, cells.calibration_cells(calibration))
    tariff = on_functions(job).tariff
    console.print()
    if tariff is not None:
        source = " ".join(part for part in (tariff.cloud, tariff.region, tariff.date, tariff.source) if part)
        console.print(f"Prices: {source}", style="dim", highlight=False, markup=False, soft_wrap=True)


def say_decision(console: Console, job: Job, decision: Decision, label: str = "") -> None:
    """The decision in a sentence."""
    style = "bold green" if decision.configuration is not None else "bold yellow"
    said = f"Decision{label}: {decision_sentence(decision, job)}"
    console.print(said, style=style, highlight=False, markup=False, soft_wrap=True)


def show_run(console: Console, account: Account) -> None:
    """What was run: a row for each stage, or for each epoch, many alike together; nothing where nothing was."""
    basis = "measured" if account.provenance is Provenance.LIVE else account.provenance
    if on_functions(account.job).tuning is not None:
        stages, title, columns = stage_rows(account), "Stages", cells.STAGES
        rows, total = [cells.stage_cells(each) for each in stages], cells.rows_total(stages)
    else:
        epochs, title, columns = epoch_rows(account), "Epochs", cells.EPOCHS
        rows, total = [cells.epoch_cells(*each) for each in folded(epochs)], cells.rows_total(epochs)
    if rows:
        _show(console, f"{title} ({basis})", columns, rows, total)
        console.print()
    if (best := best_trial(account)) is not None:
        so_far = " so far" if account.ended is None else ""
        console.print(f"Best{so_far}: {best}", highlight=False, markup=False)


def _show(
    console: Console,
    title: str,
    columns: cells.Columns,
    rows: Sequence[Sequence[str]],
    total: Sequence[str] = (),
    bold: Collection[int] = (),
) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold dim", show_footer=bool(total), footer_style="bold")
    for i, (name, kind) in enumerate(columns):
        footer = escape(total[i]) if total else ""
        table.add_column(escape(name.upper()), justify="right" if kind else "left", no_wrap=True, footer=footer)
    for i, row in enumerate(rows):
        table.add_row(*(escape(cell) for cell in row), style="bold green" if i in bold else None)
    console.print()
    console.print(title, style="bold", highlight=False, markup=False, soft_wrap=True)
    console.print(table)
