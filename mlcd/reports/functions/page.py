"""What the page of a run on functions is made of: figures and tables, each with a title and a note."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlcd.planners.functions.nouns import Planned, plan_of
from mlcd.reports.figures.allocations import allocations, allocations_key
from mlcd.reports.figures.loss import can_be_drawn, loss_curve, loss_key
from mlcd.reports.figures.stages import stages, stages_key
from mlcd.reports.functions.rows import best_path, run_rows
from mlcd.reports.functions.tables import boundary_rows, calibrated, comparison, plan_rows, ran
from mlcd.reports.functions.words import basis_words, chosen_plan, functions_of, source_words
from mlcd.reports.story import Story

_STAGES_NOTE = (
    "Above: what one trial of each stage is given. Trials of early stages are mostly stopped, so money for them is "
    "mostly lost. Below: the time from the beginning to the end of each stage."
)
_BOUNDARY_NOTE = "Each mark is an allocation that nothing beats in both time and cost of one epoch."
_PATH_NOTE = "The loss of the trial that was best at the end, from its first epoch on."
_LOSS_NOTE = "The loss at the end of each epoch. Marks have the shape of the storage."


@dataclass(frozen=True)
class Part:
    """A section: a figure for any width with its note and what its marks mean, or none; and a table below, or none."""

    title: str
    draw: Callable[[int], str] | None = None
    note: str = ""
    marks: Sequence[tuple[str, str]] = ()
    table: str = ""


def parts(story: Story, boundary: Sequence[Planned] = ()) -> list[Part]:
    """The sections in the order a reader asks: the plan, others, what is possible, the run, the calibration."""
    return [*_plan(story), *_boundary(story, boundary), *_run(story), *_calibration(story)]


def command(story: Story) -> str:
    """The command line that makes this run again from its job file."""
    tuning, goal, target = functions_of(story.job).tuning, story.goal, story.job.target
    words = ["mlcd", "train" if tuning is None else "tune", "JOB.yaml", "--on", story.started.on]
    if tuning is not None:
        words += ["--trials", str(tuning.trials), "--eta", str(tuning.eta)]
        words += ["--epochs-per-stage", str(tuning.epochs_per_stage)]
    words += ["--target-loss", f"{target.value:.10g}"] if target is not None and tuning is None else []
    words += ["--goal", str(goal.objective)]
    words += ["--budget", f"{goal.budget_usd:.10g}"] if goal.budget_usd is not None else []
    words += ["--deadline", f"{goal.deadline_s:.10g}s"] if goal.deadline_s is not None else []
    return shlex.join([*words, "--method", story.job.search.method, "--seed", str(story.job.search.seed)])


def _plan(story: Story) -> list[Part]:
    decision = story.decision
    if decision is None or not plan_of(decision).plans:
        return []
    plan, found = chosen_plan(decision), []
    basis = f"All numbers are {basis_words(plan_of(decision).calibration, story.account.provenance)}."
    if plan is not None:
        found.append(Part("The plan", note=basis, table=plan_rows(plan)))
    drawn = None
    if len(plan_of(decision).plans[0].stages) > 1:
        drawn = partial(stages, plan_of(decision).plans, plan)
    note = f"{_STAGES_NOTE} {basis}" if drawn is not None else basis
    marks = stages_key(plan_of(decision).plans, plan) if drawn is not None else ()
    return [*found, Part("Beside other plans", drawn, note, marks, comparison(plan_of(decision).plans, plan))]


def _boundary(story: Story, boundary: Sequence[Planned]) -> list[Part]:
    if not boundary:
        return []
    plan = chosen_plan(story.decision) if story.decision is not None else None
    used = {each.allocation for each in plan.stages} if plan is not None else set()
    draw = partial(allocations, boundary, plan)
    table = boundary_rows(boundary, used)
    return [Part("What an epoch takes", draw, _BOUNDARY_NOTE, allocations_key(boundary, plan), table)]


def _run(story: Story) -> list[Part]:
    rows, path = run_rows(story.account), best_path(story.account)
    if not rows:
        return []
    draw = partial(loss_curve, path, story.job.target) if can_be_drawn(path) else None
    note = _LOSS_NOTE if functions_of(story.job).tuning is None else _PATH_NOTE
    return [Part("The run", draw, note if draw is not None else "", loss_key(path) if draw else (), ran(rows))]


def _calibration(story: Story) -> list[Part]:
    calibration = plan_of(story.decision).calibration if story.decision is not None else None
    if calibration is None:
        return []
    said = source_words(calibration, story.account.provenance)
    return [Part("Calibration", note=f"{said[:1].upper()}{said[1:]}.", table=calibrated(calibration))]
