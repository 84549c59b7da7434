"""The page of a run on functions: the answer in a sentence, the key figures, the tables."""

from __future__ import annotations

from mlcd.core.ledger import Status
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.nouns import functions_task, plan_of
from mlcd.reports.answer import Card, limit_cards, undecided
from mlcd.reports.functions import tables as cells
from mlcd.reports.functions.rows import best_path, best_trial
from mlcd.reports.functions.words import basis_words, chosen_plan, decision_sentence, source_words
from mlcd.reports.story import Story
from mlcd.reports.tables import Table
from mlcd.reports.words import last_metric, reached_words


def cards(story: Story) -> list[Card]:
    """The key figures in words."""
    probing = sum(m.usd for m in story.account.history.measurements)
    calibrating = f"{counted(len(story.probes), 'probe')}, {format_duration(story.search.elapsed_s)}"
    figures = [*_planned_cards(story), ("Calibration", format_usd(probing), calibrating)]
    if path := best_path(story.account):
        last = path[-1].epoch
        assert last is not None, "a path is made of epochs"
        whose = f"trial {last.trial}, " if functions_task(story.job).tuning is not None else ""
        figures.append(("Best loss" if whose else "Loss", f"{last.loss:.4g}", f"{whose}after epoch {last.number}"))
    return [*figures, *limit_cards(story)]


def _planned_cards(story: Story) -> list[Card]:
    history = story.account.history
    plan = chosen_plan(story.decision) if story.decision is not None else None
    if story.account.ended is not None or plan is None or story.decision is None:
        word = "in all, actual" if story.account.ended is not None else "so far"
        return [
            ("Total cost", format_usd(history.spent_usd), word),
            ("Total time", format_duration(history.elapsed_s), word),
        ]
    basis = basis_words(plan_of(story.decision).calibration, story.account.provenance)
    return [
        ("Planned cost", format_usd(plan.usd), basis),
        ("Planned time", format_duration(plan.seconds), counted(len(plan.stages), "stage")),
    ]


def sentences(story: Story) -> tuple[str, str]:
    """The answer, and what to add to it."""
    decision, ended, history = story.decision, story.account.ended, story.account.history
    if decision is None:
        return undecided(story, "calibrating", counted(len(story.probes), "probe"))
    if ended is None:
        stopped = f"The run was stopped. Go on with: mlcd resume {story.run}"
        now = {Status.RUNNING: "The run is under way.", Status.STOPPED: stopped}
        return _sentence(decision_sentence(decision, story.job)), now.get(story.account.status, "")
    used = f"{format_duration(history.elapsed_s)} and {format_usd(history.spent_usd)} in total"
    outcome = f"{ended.because}; {used}" if ended.finished else f"it did not finish: {ended.because}; {used}"
    target = story.job.target
    judged = reached_words(target, last_metric(history.runs)) if target is not None and ended.finished else ""
    judged = judged or (f"best: {best}" if (best := best_trial(story.account)) is not None else "")
    return _sentence(outcome), _sentence(judged) if judged else ""


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def ran(story: Story) -> list[Table]:
    """The measured stages or epochs; after stages also the epochs of the best trial."""
    what, columns, rows, total = cells.run_cells(story.account)
    tables = [Table(f"Every {what} that was run", columns, rows, total)] if rows else []
    if functions_task(story.job).tuning is not None and (path := best_path(story.account)):
        best = [cells.epoch_cells(each) for each in path]
        tables.append(Table("The best trial, epoch by epoch", cells.EPOCHS, best))
    return tables


def plans(story: Story) -> list[Table]:
    """The plan compared with those of other methods, also of methods without a plan within the limits."""
    decision = story.decision
    if decision is None or not plan_of(decision).plans:
        return []
    rows = cells.comparison_cells(plan_of(decision).plans, chosen_plan(decision))
    basis = f"All numbers are {basis_words(plan_of(decision).calibration, story.account.provenance)}."
    chosen = [i for i, row in enumerate(rows) if row[-1]]
    return [Table("The plan compared with other methods", cells.COMPARISON, rows, note=basis, chosen=chosen)]


def calibrated(story: Story) -> list[Table]:
    """The calibration of the platform."""
    calibration = plan_of(story.decision).calibration if story.decision is not None else None
    if calibration is None:
        return []
    note = _sentence(source_words(calibration, story.account.provenance))
    return [Table("The calibration", cells.CALIBRATION, cells.calibration_cells(calibration), note=note)]
