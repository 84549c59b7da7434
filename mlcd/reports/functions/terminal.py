"""What a terminal shows of a job on functions: the plan beside other plans, the boundary, the run, the calibration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.backend import Provenance
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.planners.functions.nouns import Allocation, Calibration, Planned, StagePlan, plan_of
from mlcd.reports.functions.boundary import brief, marks
from mlcd.reports.functions.cells import (
    BOUNDARY,
    CALIBRATION,
    COMPARISON,
    EPOCHS,
    PLAN,
    STAGES,
    Columns,
    boundary_cells,
    calibration_cells,
    comparison_cells,
    epoch_cells,
    plan_cells,
    plan_total,
    rows_total,
    stage_cells,
)
from mlcd.reports.functions.rows import EpochRow, StageRow, best_trial, folded, run_rows
from mlcd.reports.functions.words import (
    basis_words,
    chosen_plan,
    decision_sentence,
    functions_of,
    plan_name,
    source_words,
)


def plan_table(plan: StagePlan) -> Table:
    """A row for each stage, and the sums."""
    return _table(PLAN, [plan_cells(i, each) for i, each in enumerate(plan.stages, 1)], plan_total(plan))


def comparison_table(plans: Sequence[StagePlan], chosen: StagePlan | None) -> Table:
    """The methods in order: what each would take, and how far that is from what was chosen."""
    rows = comparison_cells(plans, chosen)
    marked = [i for i, cells in enumerate(rows) if cells[-1]]
    return _table(COMPARISON, rows, bold=marked)


def boundary_table(points: Sequence[Planned], chosen: Collection[Allocation] = ()) -> Table:
    """A dozen points of the boundary: the fastest, the knee, the cheapest, and some between."""
    shown, named = brief(points), marks(points)
    rows = [boundary_cells(point, named.get(point.allocation, "")) for point in shown]
    return _table(BOUNDARY, rows, bold=[i for i, point in enumerate(shown) if point.allocation in chosen])


def calibration_table(calibration: Calibration) -> Table:
    """What computing, loading, starting and each storage take."""
    return _table(CALIBRATION, calibration_cells(calibration))


def run_table(rows: Sequence[StageRow] | Sequence[EpochRow]) -> Table:
    """What was run: a row for each stage, or for each epoch; many epochs alike are told together."""
    stages = [row for row in rows if isinstance(row, StageRow)]
    if stages:
        return _table(STAGES, [stage_cells(row) for row in stages], rows_total(stages))
    epochs = [row for row in rows if isinstance(row, EpochRow)]
    return _table(EPOCHS, [epoch_cells(row) for row in folded(epochs)], rows_total(epochs))


def show_plan(
    console: Console,
    job: Job,
    decision: Decision,
    boundary: Sequence[Planned] = (),
    provenance: Provenance = Provenance.LIVE,
) -> None:
    """The boundary, the plan, the others beside it, what they rest on. `provenance`: of the calibration."""
    plan, calibration = chosen_plan(decision), plan_of(decision).calibration
    basis = basis_words(calibration, provenance)
    if boundary:
        used = {each.allocation for each in plan.stages} if plan is not None else set()
        _titled(console, f"Boundary, one epoch ({basis}): {len(boundary):,} points", boundary_table(boundary, used))
    if plan is not None:
        _titled(console, f"Plan, {plan_name(plan.method)} ({basis})", plan_table(plan))
    if plan is not None or plan_of(decision).plans:
        _titled(console, f"Beside other plans ({basis})", comparison_table(plan_of(decision).plans, plan))
    if calibration is not None:
        _titled(console, f"Calibration: {source_words(calibration, provenance)}", calibration_table(calibration))
    tariff = functions_of(job).tariff
    console.print()
    if tariff is not None:
        told = " ".join(part for part in (tariff.cloud, tariff.region, tariff.date, tariff.source) if part)
        console.print(f"Prices: {told}", style="dim", highlight=False, markup=False, soft_wrap=True)


def say_decision(console: Console, job: Job, decision: Decision, label: str = "") -> None:
    """The decision in a sentence."""
    style = "bold green" if decision.configuration is not None else "bold yellow"
    said = f"Decision{label}: {decision_sentence(decision, job)}"
    console.print(said, style=style, highlight=False, markup=False, soft_wrap=True)


def show_run(console: Console, account: Account) -> None:
    """What was run, stage by stage or epoch by epoch; nothing where nothing was."""
    rows = run_rows(account)
    if rows:
        many = "Stages" if isinstance(rows[0], StageRow) else "Epochs"
        seen = "measured" if account.provenance is Provenance.LIVE else account.provenance
        _titled(console, f"{many} ({seen})", run_table(rows))
        console.print()
    if (best := best_trial(account)) is not None:
        console.print(
            f"Best so far: {best}" if account.ended is None else f"Best: {best}", highlight=False, markup=False
        )


def _titled(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(title, style="bold", highlight=False, markup=False, soft_wrap=True)
    console.print(table)


def _table(
    columns: Columns, rows: Sequence[Sequence[str]], total: Sequence[str] = (), bold: Collection[int] = ()
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", show_footer=bool(total), footer_style="bold")
    for i, (name, kind) in enumerate(columns):
        footer = escape(total[i]) if total else ""
        table.add_column(escape(name.upper()), justify="right" if kind else "left", no_wrap=True, footer=footer)
    for i, cells in enumerate(rows):
        table.add_row(*(escape(cell) for cell in cells), style="bold green" if i in bold else None)
    return table
