"""The tables of a page about a run on functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlcd.planners.functions.nouns import Allocation, Calibration, Planned, StagePlan
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
from mlcd.reports.functions.rows import EpochRow, StageRow, folded
from mlcd.reports.tables import row, table


def plan_rows(plan: StagePlan) -> str:
    """The stages of a plan."""
    cells = [plan_cells(i, each) for i, each in enumerate(plan.stages, 1)]
    return _table(PLAN, cells, "The plan", total=plan_total(plan))


def comparison(plans: Sequence[StagePlan], chosen: StagePlan | None) -> str:
    """The plan beside those of other methods."""
    cells = comparison_cells(plans, chosen)
    return _table(COMPARISON, cells, "Plans", chosen=[i for i, each in enumerate(cells) if each[-1]])


def boundary_rows(points: Sequence[Planned], chosen: Collection[Allocation]) -> str:
    """A dozen points of the boundary."""
    shown, named = brief(points), marks(points)
    cells = [boundary_cells(point, named.get(point.allocation, "")) for point in shown]
    return _table(BOUNDARY, cells, "The boundary", chosen=[i for i, p in enumerate(shown) if p.allocation in chosen])


def ran(rows: Sequence[StageRow] | Sequence[EpochRow]) -> str:
    """What was run, stage by stage or epoch by epoch."""
    stages = [each for each in rows if isinstance(each, StageRow)]
    if stages:
        return _table(STAGES, [stage_cells(each) for each in stages], "Stages", total=rows_total(stages))
    epochs = [each for each in rows if isinstance(each, EpochRow)]
    return _table(EPOCHS, [epoch_cells(each) for each in folded(epochs)], "Epochs", total=rows_total(epochs))


def calibrated(calibration: Calibration) -> str:
    """What was found out about the platform."""
    return _table(CALIBRATION, calibration_cells(calibration), "Calibration")


def _table(
    columns: Columns,
    rows: Sequence[Sequence[str]],
    caption: str,
    total: Sequence[str] = (),
    chosen: Collection[int] = (),
) -> str:
    drawn = [row(cells, columns, class_="chosen" if i in chosen else None) for i, cells in enumerate(rows)]
    return table(columns, drawn, row(total, columns) if total else "", caption)
