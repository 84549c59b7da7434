"""The certificate of a choice: spent + reserved <= limit, for each limit; for a server, its measured figures."""

from __future__ import annotations

from typing import Any, Literal

from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import keeps_limits
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask, service_of
from mlcd.planners.serve.service_level import certifies
from mlcd.reports.answer import where_it_ends
from mlcd.reports.serve import page as serve_page
from mlcd.reports.serve.words import certificate_words, result_words
from mlcd.reports.story import Story
from mlcd.reports.view.page import Certificate, CertificateTerm
from mlcd.reports.words import memory_words, slow_rate_words, where_words

NO_LIMIT = "There is no limit to break."


def certificate(story: Story) -> Certificate | None:
    """The certificate of the choice, or of the best so far; None if there is neither."""
    decision, goal, gone = story.decision, story.goal, story.search
    if isinstance(story.job.ask, ServingTask):
        return _of_server(story)
    if isinstance(story.job.ask, FunctionsTask):
        if decision is None or decision.forecast is None:
            return None
        headline, ahead = "The reserve of the plan", decision.forecast
        total = "What calibrating took, plus the plan at the slow end of the calibration's spread"
    else:
        if (end := where_it_ends(story)) is None:
            return None
        place, ahead = end
        headline, total = f"The reserve on {place}", _sum_words(ahead, decision)
        if decision is None:
            holds = keeps_limits(goal, gone, ahead)
            decision = Decision(place, "the best so far", certified=holds, confidence=goal.confidence)
    verb = "stays within" if keeps_limits(goal, gone, ahead) else "does not stay within"
    return _reserve(headline, f"{total}, {verb} the limit.", goal, gone, ahead, decision)


def what_if_certificate(job: Job, gone: History, decision: Decision) -> dict[str, Any] | None:
    """The certificate of a what-if, as JSON."""
    ahead = decision.forecast
    if isinstance(job.ask, ServingTask) or ahead is None:
        return None
    headline, note = f"The reserve on {decision.configuration}", f"{_sum_words(ahead, decision)}, against the limit."
    return _reserve(headline, note, job.goal, gone, ahead, decision).model_dump()


def _sum_words(ahead: Forecast, decision: Decision | None) -> str:
    rate = "the slow end of the measured rate" if decision is None else slow_rate_words(decision)
    return f"What the search took, plus finishing{where_words(ahead)} at {rate}"


def _reserve(headline: str, note: str, goal: Goal, gone: History, ahead: Forecast, of: Decision) -> Certificate:
    terms = []
    if goal.budget_usd is not None:
        terms.append(_term("usd", gone.spent_usd, ahead.worst_usd, goal.budget_usd))
    if goal.deadline_s is not None:
        terms.append(_term("s", gone.elapsed_s, ahead.worst_seconds, goal.deadline_s))
    return Certificate(
        certified=of.certified,
        confidence=of.confidence if terms else None,
        headline=headline,
        sentence=f"{(note if terms else NO_LIMIT).removesuffix('.')}{memory_words(of)}.",
        terms=terms,
    )


def _term(unit: Literal["usd", "s"], gone: float, kept: float, limit: float) -> CertificateTerm:
    return CertificateTerm(unit=unit, gone=gone, kept=kept, limit=limit, holds=gone + kept <= limit)


def _of_server(story: Story) -> Certificate | None:
    """The measured figures of the choice, and whether even their worst end keeps the caps."""
    trial = serve_page.decided_trial(story)
    if trial is None:
        return None
    certified = story.decision.certified if story.decision is not None else certifies(story.job, trial)
    promise = result_words(trial, service_of(story.job))
    sentence = f"{promise}; {certificate_words(trial, story.job, certified)}."
    headline = f"What {trial.configuration} keeps"
    return Certificate(certified=certified, confidence=None, headline=headline, sentence=sentence, terms=[])
