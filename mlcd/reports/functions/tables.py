"""The tables of a run on functions: what was run, the best trial, every plan, and the calibration that all rest on."""

from __future__ import annotations

from mlcd.planners.functions.nouns import plan_of
from mlcd.reports.functions.cells import (
    CALIBRATION,
    COMPARISON,
    EPOCHS,
    STAGES,
    calibration_cells,
    comparison_cells,
    epoch_cells,
    rows_total,
    stage_cells,
)
from mlcd.reports.functions.rows import best_path, epoch_rows, folded, stage_rows
from mlcd.reports.functions.words import basis_words, chosen_plan, functions_of, source_words
from mlcd.reports.story import Story
from mlcd.reports.tables import Table


def ran(story: Story) -> list[Table]:
    """What was run, stage by stage or epoch by epoch; of the stages also the best trial, epoch by epoch."""
    if functions_of(story.job).tuning is None:
        epochs = epoch_rows(story.account)
        rows = [epoch_cells(each) for each in folded(epochs)]
        return [Table("Every epoch that was run", EPOCHS, rows, rows_total(epochs))] if epochs else []
    stages = stage_rows(story.account)
    if not stages:
        return []
    path = [epoch_cells(each) for each in best_path(story.account)]
    best = [Table("The best trial, epoch by epoch", EPOCHS, path)] if path else []
    rows = [stage_cells(each) for each in stages]
    return [Table("Every stage that was run", STAGES, rows, rows_total(stages)), *best]


def plans(story: Story) -> list[Table]:
    """The plan beside those of other methods, also of those that have none within the limits."""
    decision = story.decision
    if decision is None or not plan_of(decision).plans:
        return []
    rows = comparison_cells(plan_of(decision).plans, chosen_plan(decision))
    basis = f"All numbers are {basis_words(plan_of(decision).calibration, story.account.provenance)}."
    chosen = [i for i, cells in enumerate(rows) if cells[-1]]
    return [Table("The plan beside those of other methods", COMPARISON, rows, note=basis, chosen=chosen)]


def calibrated(story: Story) -> list[Table]:
    """What was found out about the platform."""
    calibration = plan_of(story.decision).calibration if story.decision is not None else None
    if calibration is None:
        return []
    said = source_words(calibration, story.account.provenance)
    note = f"{said[:1].upper()}{said[1:]}."
    return [Table("The calibration", CALIBRATION, calibration_cells(calibration), note=note)]
