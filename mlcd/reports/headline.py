"""The answer of a run in one line, on top of its page: '2 x g6.xlarge · 2 d 1 h · $79 · fits $100'."""

from __future__ import annotations

from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Status
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask, served_by, service_of
from mlcd.reports.functions.rows import best_path
from mlcd.reports.functions.words import chosen_plan, size_words
from mlcd.reports.serve.page import decided_trial
from mlcd.reports.serve.words import (
    UNITS,
    format_price,
    format_s,
    knob_cells,
    knob_names,
    promised_figures,
    requirement_words,
)
from mlcd.reports.story import Story

BETWEEN = " · "
CENTS_BELOW = 10.0
"""Dollars from which on cents are dropped, unless rounding would cross the budget."""


def headline(story: Story) -> str:
    """The decision, its time and cost, and whether it keeps the limits; '' before a decision."""
    decision = story.decision
    if decision is None or decision.configuration is None or decision.done:
        return ""
    match story.job.ask:
        case ServingTask():
            return _of_service(story, decision)
        case FunctionsTask():
            return _on_functions(story, decision)
    if story.account.ended is not None:
        return _line(story, decision, [str(decision.configuration)], *_used(story))
    if decision.forecast is None:
        return ""
    most = ["all of the work"] if decision.curve and decision.curve[0].relative else []  # no time is forecast
    return _line(story, decision, [str(decision.configuration), *most], *story.total(decision.forecast))


def _on_functions(story: Story, decision: Decision) -> str:
    """The loss that was reached, or the plan before the run."""
    plan, path = chosen_plan(decision), best_path(story.account)
    if story.account.ended is None:
        if plan is None:
            return ""
        seconds, usd = story.search.elapsed_s + plan.seconds, story.search.spent_usd + plan.usd
        return _line(story, decision, [f"{plan.method} plan: {size_words(plan)}"], seconds, usd)
    if not path or path[-1].epoch is None:
        return ""
    last, ask = path[-1].epoch, story.job.ask
    tunes = isinstance(ask, FunctionsTask) and ask.tuning is not None
    whose = f"trial {last.trial}" if tunes else counted(last.number, "epoch")
    return _line(story, decision, [whose, f"loss {last.loss:.4g}"], *_used(story))


def _of_service(story: Story, decision: Decision) -> str:
    """The knobs that varied, the rate, the capped figures, the price."""
    found, place = decided_trial(story), decision.configuration
    if found is None or place is None:
        return ""
    service, served = service_of(story.job), served_by(found)
    kept = [f"{figure} {format_s(served.figures[figure])}" for figure in promised_figures(service, found)]
    parts = [_settings(story, found), f"{format_rate(found.rate)} {UNITS[service.counted]}", *kept]
    parts.append(f"{format_price(place.usd_per_hour)}/h")
    if requirement_words(service):
        parts.append("certified" if decision.certified else "not certified")
    return BETWEEN.join(parts)


def _settings(story: Story, found: Measurement) -> str:
    names = knob_names(m.configuration for m in story.search.measurements)
    pairs = zip(names, knob_cells(found, names, ""), strict=True)
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in pairs if value) or str(found.configuration)


def _line(story: Story, decision: Decision, what: list[str], seconds: float, usd: float) -> str:
    ended = story.account.ended
    lost = ["did not finish"] if ended is not None and story.account.status is not Status.FINISHED else []
    verdict = fits_words(story.job, decision, (usd, seconds) if ended is not None else None)
    return BETWEEN.join([*what, *lost, format_duration(seconds), brief_usd(usd, story.goal), *verdict])


def _used(story: Story) -> tuple[float, float]:
    return story.account.history.elapsed_s, story.account.history.spent_usd


def fits_words(job: Job, decision: Decision, used: tuple[float, float] | None) -> list[str]:
    """'fits $100 and 6 h', or 'over $100'. `used`: dollars and seconds of a run that is over."""
    goal = job.goal
    limits = [format_usd(goal.budget_usd).removesuffix(".00")] if goal.budget_usd is not None else []
    limits += [format_duration(goal.deadline_s)] if goal.deadline_s is not None else []
    within = " and ".join(limits)
    if not within:
        return []
    if used is not None:
        return [f"fits {within}" if goal.allows(*used) else f"over {within}"]
    return [f"fits {within}" if decision.certified else f"not certified within {within}"]


def brief_usd(usd: float, goal: Goal) -> str:
    """'$79', '$0.47'; with cents if rounding would cross the budget."""
    rounded, budget = round(usd), goal.budget_usd
    crosses = budget is not None and (rounded > budget) != (usd > budget)
    return format_usd(usd) if abs(usd) < CENTS_BELOW or crosses else f"${rounded:,}"
