"""The top of the page of a run on functions: the answer in a sentence, the key figures, the sum that makes it safe."""

from __future__ import annotations

from mlcd.core.decision import Forecast
from mlcd.core.ledger import Status
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.nouns import plan_of
from mlcd.reports.answer import Card, left_words
from mlcd.reports.functions.rows import best_path, best_trial
from mlcd.reports.functions.words import basis_words, chosen_plan, decision_sentence, functions_of
from mlcd.reports.story import Story
from mlcd.reports.words import last_metric, reached_words


def cards(story: Story) -> list[Card]:
    """The key figures in words."""
    history, goal = story.account.history, story.goal
    probing = sum(m.usd for m in history.measurements)
    calibrating = f"{counted(len(story.probes), 'probe')}, {format_duration(story.search.elapsed_s)}"
    found = [*_planned_cards(story), ("Calibration", format_usd(probing), calibrating)]
    if path := best_path(story.account):
        last = path[-1].epoch
        assert last is not None, "a path is made of epochs"
        whose = f"trial {last.trial}, " if functions_of(story.job).tuning is not None else ""
        found.append(("Best loss" if whose else "Loss", f"{last.loss:.4g}", f"{whose}after epoch {last.number}"))
    if goal.budget_usd is not None:
        left = left_words(goal.budget_usd - history.spent_usd, format_usd)
        found.append(("Budget", format_usd(goal.budget_usd), left))
    if goal.deadline_s is not None:
        left = left_words(goal.deadline_s - history.elapsed_s, format_duration)
        found.append(("Deadline", format_duration(goal.deadline_s), left))
    return found


def reserve_note(story: Story, ahead: Forecast) -> str:
    """What the reserve's equations say, in a sentence."""
    goal, gone = story.goal, story.search
    holds = goal.allows(gone.spent_usd + ahead.worst_usd, gone.elapsed_s + ahead.worst_seconds)
    verb = "stays within" if holds else "does not stay within"
    return f"What calibrating took, plus the plan at the slow end of the calibration's spread, {verb} the limit."


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
    """The answer, and what needs saying after it."""
    said, more = _said(story)
    return f"{said[:1].upper()}{said[1:]}.", more


def _said(story: Story) -> tuple[str, str]:
    decision, ended, history = story.decision, story.account.ended, story.account.history
    resume = f"Go on with: mlcd resume {story.run}"
    stopped = story.status is Status.STOPPED
    if decision is None:
        state = "stopped" if stopped else "still calibrating"
        said = f"{state} after {counted(len(story.probes), 'probe')}, {format_usd(history.spent_usd)} spent"
        return said, resume if stopped else "This page shows the run as it stood; make it again later."
    if ended is None:
        now = {Status.RUNNING: "The run is under way.", Status.STOPPED: f"The run was stopped. {resume}"}
        return decision_sentence(decision, story.job), now.get(story.status, "")
    used = f"{format_duration(history.elapsed_s)} and {format_usd(history.spent_usd)} in total"
    told = f"{ended.because}; {used}" if ended.finished else f"it did not finish: {ended.because}; {used}"
    target = story.job.target
    judged = reached_words(target, last_metric(history.runs)) if target is not None and ended.finished else ""
    judged = judged or (f"best: {best}" if (best := best_trial(story.account)) is not None else "")
    return told, f"{judged[:1].upper()}{judged[1:]}." if judged else ""
