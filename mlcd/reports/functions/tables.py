"""The tables of a job on functions: their cells, for terminal and page; and the terminal's output."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from mlcd.core.backend import Provenance
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.core.units import counted, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import Allocation, Calibration, Planned, StagePlan, functions_task, plan_of
from mlcd.reports.functions.rows import (
    EpochRow,
    StageRow,
    best_trial,
    epoch_rows,
    grouped_rows,
    point_names,
    shown_points,
    stage_rows,
)
from mlcd.reports.functions.words import basis_words, chosen_plan, compared_methods, plan_name, short_s, source_words
from mlcd.reports.terminal_tables import Columns, Row, rich_table

NO_PLAN = "no plan within the limits"
MOST_SIZES = 8
"""Most memory sizes of a calibration that are shown."""

PLAN = (
    ("Stage", "num"), ("Trials", "num"), ("Epochs", "num"), ("Functions", "num"), ("Memory", "num"), ("Storage", ""),
    ("Time", "num"), ("Cost", "num"), ("Cost of a trial", "num"),
)  # fmt: skip
COMPARISON = (
    ("Plan", ""), ("Time", "num"), ("vs chosen", "num"), ("Cost", "num"), ("vs chosen", "num"), ("Chosen", ""),
)  # fmt: skip
BOUNDARY = (
    ("Functions", "num"), ("Memory", "num"), ("Storage", ""), ("Epoch time", "num"), ("Epoch cost", "num"), ("", ""),
)  # fmt: skip
STAGES = (
    ("Stage", "num"), ("Trials", "num"), ("Kept", "num"), ("Best loss", "num"), ("Allocation", ""),
    ("Time planned", "num"), ("Time", "num"), ("Cost planned", "num"), ("Cost", "num"), ("Retries", "num"),
)  # fmt: skip
EPOCHS = (
    ("Epoch", "num"), ("Allocation", ""), ("Loss", "num"), ("Start", "num"), ("Load", "num"), ("Compute", "num"),
    ("Sync", "num"), ("Time", "num"), ("Cost", "num"), ("Retries", "num"),
)  # fmt: skip
CALIBRATION = (("What", ""), ("Value", "num"), ("Exchanges: functions, time", ""))


def comparison_cells(plans: Sequence[StagePlan], chosen: StagePlan | None) -> list[list[str]]:
    """A row for each installed method, in order; a method without a plan cannot keep the limit."""
    made = {plan.method: plan for plan in plans}
    return [_compared(method, made.get(method), chosen) for method in dict.fromkeys([*compared_methods(), *made])]


def run_cells(account: Account) -> tuple[str, Columns, list[list[str]], list[str]]:
    """The measured stages or epochs: 'stage' or 'epoch', the columns, the rows, and the row of totals."""
    if functions_task(account.job).tuning is not None:
        stages = stage_rows(account)
        return "stage", STAGES, [_stage_cells(row) for row in stages], _stages_total(stages)
    epochs = epoch_rows(account)
    total = _time_and_cost(sum(row.seconds for row in epochs), sum(row.usd for row in epochs))
    rows = [epoch_cells(*rows) for rows in grouped_rows(epochs)]
    return "epoch", EPOCHS, rows, ["", "total", *[""] * 5, *total, ""]


def _stage_cells(row: StageRow) -> list[str]:
    planned, best = row.planned, row.best
    trials = f"{row.trials:,}" if row.trials == row.stage.trials else f"{row.trials:,} of {row.stage.trials:,}"
    return [
        str(row.number),
        trials,
        f"{row.kept:,}" if row.kept is not None else "-",
        f"{best.loss:.4g}" if best is not None else "-",
        str(row.allocation or "-"),
        format_duration(planned.seconds) if planned is not None else "-",
        format_duration(row.seconds),
        format_usd(planned.usd) if planned is not None else "-",
        format_usd(row.usd),
        str(row.retries or ""),
    ]


def epoch_cells(*rows: EpochRow) -> list[str]:
    """The cells of an epoch, or of several on one allocation: last loss, median times, and sums."""
    row = rows[0]
    if len(rows) > 1:
        return _folded_cells(rows)
    if row.epoch is None:
        return ["-", f"{row.allocation}: {row.launch.ending}", *[""] * 5, *_time_and_cost(row.seconds, row.usd), ""]
    epoch = row.epoch
    parts = (epoch.start_s, epoch.load_s, epoch.compute_s, epoch.sync_s)
    cells = [str(epoch.number), str(row.allocation or "-"), f"{epoch.loss:.4g}", *(short_s(part) for part in parts)]
    return [*cells, short_s(row.seconds), fine_usd(row.usd), str(epoch.retries or "")]


def _stages_total(rows: Sequence[StageRow]) -> list[str]:
    planned = [row.planned for row in rows if row.planned is not None]
    plan = _time_and_cost(sum(p.seconds for p in planned), sum(p.usd for p in planned)) if planned else ["-", "-"]
    time, cost = _time_and_cost(sum(row.seconds for row in rows), sum(row.usd for row in rows))
    return ["", "", "", "", "total", plan[0], time, plan[1], cost, ""]


def calibration_cells(calibration: Calibration) -> list[list[str]]:
    """The cells of a calibration: computing at each memory size, loading, start-up, and each storage."""
    every = -(-len(calibration.compute) // MOST_SIZES) or 1
    shown = [*calibration.compute[:-1:every], *calibration.compute[-1:]]
    rows = [[f"u({memory:,.0f} MB)", f"{s_per_mb:.3g} s/MB", ""] for memory, s_per_mb in shown]
    start, more = calibration.start
    rows.append(["load", f"{format_rate(calibration.load_mb_per_s)} MB/s", ""])
    rows.append(["start", f"{short_s(start)} + {short_s(more)} for each function", ""])
    for name, link in calibration.links.items():
        exchanges = ", ".join(f"{functions}: {short_s(seconds)}" for functions, seconds in link.exchanges)
        rows.append([name, f"{short_s(link.latency_s)}, {format_rate(link.mb_per_s)} MB/s", exchanges])
    return rows


def _compared(method: str, plan: StagePlan | None, chosen: StagePlan | None) -> list[str]:
    if plan is None:
        return [plan_name(method), NO_PLAN, "", "", "", ""]
    time, cost = _time_and_cost(plan.seconds, plan.usd)
    if chosen is None:
        return [plan_name(method), time, "", cost, "", ""]
    picked = plan is chosen or plan == chosen
    gaps = ("", "") if picked else (gap_words(plan.seconds, chosen.seconds), gap_words(plan.usd, chosen.usd))
    return [plan_name(method), time, gaps[0], cost, gaps[1], "✔" if picked else ""]


def _folded_cells(rows: Sequence[EpochRow]) -> list[str]:
    epochs = [row.epoch for row in rows if row.epoch is not None]
    names, middle = ("start_s", "load_s", "compute_s", "sync_s"), len(epochs) // 2
    parts = [sorted(getattr(epoch, name) for epoch in epochs)[middle] for name in names]
    first, last = epochs[0], epochs[-1]
    seconds, usd = sum(row.seconds for row in rows), sum(row.usd for row in rows)
    where = f"{counted(len(epochs), 'epoch')} on the same"
    cells = [f"{first.number}-{last.number}", where, f"{last.loss:.4g}", *(f"~{short_s(part)}" for part in parts)]
    return [*cells, *_time_and_cost(seconds, usd), ""]


def fine_usd(usd: float) -> str:
    """'$0.00123': three digits, for the cost of one trial or one epoch."""
    if usd <= 0 or usd >= 1:
        return format_usd(usd)
    return f"${usd:.{2 - math.floor(math.log10(usd))}f}"


def gap_words(number: float, chosen: float) -> str:
    """'+204 %', '-3.1 %', 'same': compared with the chosen plan."""
    if chosen <= 0:
        return ""
    percent = 100 * (number / chosen - 1)
    if abs(percent) < 0.05:
        return "same"
    return f"{percent:+,.0f} %" if abs(percent) >= 9.95 else f"{percent:+.1f} %"


def _allocated(allocation: Allocation) -> list[str]:
    return [f"{allocation.functions:,}", f"{allocation.memory_mb:,} MB", allocation.storage]


def _time_and_cost(seconds: float, usd: float) -> list[str]:
    return [format_duration(seconds), format_usd(usd)]


def show_plan(
    console: Console,
    job: Job,
    decision: Decision,
    boundary: Sequence[Planned] = (),
    provenance: Provenance = Provenance.LIVE,
) -> None:
    """Print the boundary, the plan, the plans of other methods and the calibration, whose provenance this is."""
    plan, plans, calibration = chosen_plan(decision), plan_of(decision).plans, plan_of(decision).calibration
    basis = basis_words(calibration, provenance)
    if boundary:
        used = {each.allocation for each in plan.stages} if plan is not None else set()
        shown, named = shown_points(boundary), point_names(boundary)
        rows = [
            [*_allocated(p.allocation), short_s(p.seconds), fine_usd(p.usd), named.get(p.allocation, "")] for p in shown
        ]
        chosen = [i for i, point in enumerate(shown) if point.allocation in used]
        _show(console, f"Boundary, one epoch ({basis}): {len(boundary):,} points", BOUNDARY, rows, chosen=chosen)
    if plan is not None:
        rows = []
        for number, each in enumerate(plan.stages, 1):
            cells = [str(number), f"{each.stage.trials:,}", str(each.stage.epochs), *_allocated(each.allocation)]
            rows.append([*cells, *_time_and_cost(each.seconds, each.usd), fine_usd(each.usd / each.stage.trials)])
        total = ["", "total", "", "", "", "", *_time_and_cost(plan.seconds, plan.usd), ""]
        _show(console, f"Plan, {plan_name(plan.method)} ({basis})", PLAN, rows, total)
    if plans:
        rows = comparison_cells(plans, plan)
        chosen = [i for i, row in enumerate(rows) if row[-1]]
        _show(console, f"Compared with other methods ({basis})", COMPARISON, rows, chosen=chosen)
    if calibration is not None:
        title = f"Calibration: {source_words(calibration, provenance)}"
        _show(console, title, CALIBRATION, calibration_cells(calibration))
    tariff = functions_task(job).tariff
    console.print()
    if tariff is not None:
        source = " ".join(part for part in (tariff.cloud, tariff.region, tariff.date, tariff.source) if part)
        console.print(f"Prices: {source}", style="dim", markup=False, soft_wrap=True)


def show_run(console: Console, account: Account) -> None:
    """Print the measured stages or epochs, if there are any."""
    basis = "measured" if account.provenance is Provenance.LIVE else account.provenance
    what, columns, rows, total = run_cells(account)
    if rows:
        _show(console, f"{what.capitalize()}s ({basis})", columns, rows, total)
        console.print()
    if (best := best_trial(account)) is not None:
        so_far = " so far" if account.ended is None else ""
        console.print(f"Best{so_far}: {best}", markup=False)


def _show(
    console: Console, title: str, columns: Columns, rows: Sequence[Row], total: Row = (), chosen: Sequence[int] = ()
) -> None:
    console.print()
    console.print(title, style="bold", markup=False, soft_wrap=True)
    console.print(rich_table(columns, rows, total, chosen))
