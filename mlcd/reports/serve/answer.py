"""The top of a serving run's page: the answer in a sentence, the key figures, what is asked against what was seen."""

from __future__ import annotations

import math

from mlcd.core.ledger import Status
from mlcd.core.measurement import Measurement, Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, ServingTask
from mlcd.planners.serve.promise import best, service_of
from mlcd.reports.answer import Card, left_words
from mlcd.reports.serve.words import (
    UNITS,
    certificate_words,
    decision_sentence,
    format_price,
    format_s,
    promise_words,
    promised,
    trials_words,
    usd_per_million,
)
from mlcd.reports.story import Story


def cards(story: Story) -> list[Card]:
    """The key figures in words."""
    service, history, goal = service_of(story.job), story.account.history, story.goal
    found = found_trial(story)
    told = _found_cards(story, found, service) if found is not None else []
    failed = len(story.failed)
    told.append(("Trials", str(len(story.probes)), f"{len(story.probes) - failed} ok, {failed} failed"))
    spent = format_duration(sum(trial.measurement.seconds for trial in story.probes))
    if goal.budget_usd is not None:
        spent = f"of {format_usd(goal.budget_usd)}, {left_words(goal.budget_usd - history.spent_usd, format_usd)}"
    told.append(("Spent on trials", format_usd(history.spent_usd), spent))
    if goal.deadline_s is not None:
        left = left_words(goal.deadline_s - history.elapsed_s, format_duration)
        told.append(("Deadline", format_duration(goal.deadline_s), left))
    return told


def found_trial(story: Story) -> Measurement | None:
    """What was measured of the decided configuration; while nothing is decided, of the best so far."""
    good = story.search.good
    if story.decision is None:
        return best(story.job, good)
    return next((m for m in good if m.configuration == story.decision.configuration), None)


def sentences(story: Story) -> tuple[str, str]:
    """The answer, and what needs saying after it."""
    said, more = _said(story)
    named = story.decision is not None and story.decision.configuration is not None  # a knob's name stays as it is
    return f"{said if named else said[:1].upper() + said[1:]}.", more


def _said(story: Story) -> tuple[str, str]:
    decision, service = story.decision, service_of(story.job)
    if decision is not None:
        said = decision_sentence(decision, story.job, story.search)
        return said, "" if decision.configuration is None else _meaning(story)
    stopped = story.status is Status.STOPPED
    said = f"{'stopped' if stopped else 'still searching'} after {trials_words(story.search)}"
    said += f", {format_usd(story.account.history.spent_usd)} spent"
    if (found := found_trial(story)) is not None:
        said += f"; best so far {found.configuration}: {promise_words(found, service)}"
    resume = f"Go on with: mlcd resume {story.run}"
    return said, resume if stopped else "This page shows the run as it stood; make it again later."


def _meaning(story: Story) -> str:
    """What the word at the end of the sentence promises."""
    found = found_trial(story)
    if found is None or certificate_words(found, story.job, certified=True) != "certified":
        return ""
    if story.decision is not None and story.decision.certified:
        return "Certified: what is asked is kept even at the unlucky end of what the trial measured."
    return "Kept as measured; the unlucky end of what the trial measured breaks what is asked."


def _found_cards(story: Story, found: Measurement, service: ServingTask) -> list[Card]:
    word = "" if story.decision is not None else ", the best so far"
    per_million = f"at {format_price(found.configuration.usd_per_hour)} an hour{word}"
    cards = [
        (f"A million {service.counted}", format_price(usd_per_million(found)), per_million),
        (UNITS[service.counted].capitalize(), format_rate(found.rate), f"± {100 * Z * found.rel_error:.1f} %"),
    ]
    cards += [(str(figure), *_figure(found, figure, service)) for figure in promised(service, found)]
    return cards


def _figure(found: Measurement, figure: Figure, service: ServingTask) -> tuple[str, str]:
    assert isinstance(found.evidence, Served), "a figure was measured"
    high = found.evidence.high.get(figure, math.inf)
    said = [f"at most {format_s(high)}"] if math.isfinite(high) else []
    said += [f"cap {format_s(cap.at_most_s)}" for cap in service.caps if cap.figure is figure]
    return format_s(found.evidence.figures[figure]), ", ".join(said) or "no cap"
