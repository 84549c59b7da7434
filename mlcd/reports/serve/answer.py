"""The top of a serving run's page: the answer in a sentence, the key figures, what is asked against what was seen."""

from __future__ import annotations

import math

from mlcd.core.ledger import Status
from mlcd.core.measurement import Measurement, Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, ServingTask, served_by
from mlcd.planners.serve.promise import best, service_of
from mlcd.reports.answer import Card, card, left_words
from mlcd.reports.markup import element, text
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


def answer(story: Story) -> str:
    """The answer in one sentence, and one more where it needs saying."""
    sentence, more = sentences(story)
    return element("p", text(sentence), class_="answer") + (element("p", text(more), class_="more") if more else "")


def key_figures(story: Story) -> str:
    """The few numbers that a reader looks for first."""
    return element("dl", *(card(*each) for each in cards(story)), class_="cards")


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


def kept(story: Story) -> str:
    """Everything that is asked, beside what was measured and its unlucky end; empty where nothing is asked."""
    service, found = service_of(story.job), found_trial(story)
    if found is None or not (service.caps or service.min_rate is not None):
        return ""
    served = served_by(found) or Served({}, {})
    figures, high = served.figures, served.high
    rows = []
    for cap in service.caps:
        value, end = figures.get(cap.figure, math.inf), high.get(cap.figure, math.inf)
        rows.append(_row(cap.figure, f"≤ {format_s(cap.at_most_s)}", format_s(value), format_s(end)))
    if service.min_rate is not None:
        rates = (service.min_rate, found.rate, found.slow_samples_per_s)
        asked, measured, slow = (format_rate(rate) for rate in rates)
        rows.append(_row(UNITS[service.counted], f"≥ {asked}", measured, slow))
    names = ("", "Asked", "Measured", "At the unlucky end")
    head = element("tr", *(element("th", name, scope="col", class_="num" if name else None) for name in names))
    table = element("table", element("thead", head), element("tbody", *rows))
    title = element("h3", text(f"What is asked of {found.configuration}"))
    return element("div", title, element("div", table, class_="scroll"), class_="actual")


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
    said += f", {format_usd(story.settled_usd)} spent"
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


def _row(name: str, *cells: str) -> str:
    numbers = (element("td", text(cell), class_="num") for cell in cells)
    return element("tr", element("th", text(name), scope="row"), *numbers)
