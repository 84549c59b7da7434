"""The report's reasons: why each probe was made, what was refused, and why the search ended."""

from __future__ import annotations

from mlcd.core.backend import Purpose
from mlcd.core.ledger import Ended, Refused, Reserved, Resumed, Settled, Stopped, Voided, Warned
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import format_rate
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.figures.marks import outcome_words
from mlcd.reports.functions.words import result_words
from mlcd.reports.markup import element, text
from mlcd.reports.serve.words import short_words
from mlcd.reports.story import Story


def reasons(story: Story) -> str:
    """The steps in order, each with its reason and what came of it."""
    items, number = [], 0
    why = {line.entry.launch.label: line.entry.because for line in story.lines if isinstance(line.entry, Reserved)}
    for line in story.lines:
        match line.entry:
            case Settled(launch=launch, measurement=m):
                probe = launch.purpose is Purpose.PROBE
                number += probe
                label = str(number) if probe else "run"
                items.append(
                    _item(
                        label,
                        str(m.configuration),
                        why[launch.label],
                        _showed(story, m),
                        "" if m.ok or m.outcome is Outcome.OK else "failed",
                    )
                )
            case Refused():
                items.append(_item("–", str(line.entry.configuration), line.entry.because, "refused", "refused"))
            case Voided():
                items.append(_item("–", str(line.entry.launch.configuration), line.entry.because, "void", "refused"))
            case Warned() | Stopped() | Resumed():
                items.append(_item("–", line.entry.kind, line.entry.because, "", "refused"))
            case Ended():
                items.append(_item("–", line.entry.kind, line.entry.because, "", "refused"))
            case _:
                pass
    for left in story.account.open:
        items.append(_item("…", str(left.launch.configuration), left.because, "under way", ""))
    listed = element("ol", *items, class_="reasons") if items else element("p", "Nothing was tried.", class_="note")
    return listed + why_it_ended(story)


def why_it_ended(story: Story) -> str:
    """Why the search stopped, or that it has not."""
    decision = story.decision
    said = f"Why the search ended: {decision.because}." if decision is not None else "The search has not ended."
    return element("p", text(said), class_="ended")


def _showed(story: Story, m: Measurement) -> str:
    if isinstance(story.job.ask, ServingTask):
        return short_words(m, story.job.ask)
    if isinstance(story.job.ask, FunctionsTask):
        return result_words(m)
    return f"{format_rate(m.rate)} samples/s" if m.ok else outcome_words(m.outcome)


def _item(label: str, what: str, because: str, result: str, class_: str) -> str:
    return element(
        "li",
        element("span", text(label), class_="no"),
        element("span", element("b", text(what)), " ", text(because), class_="why"),
        element("span", text(result), class_="result"),
        class_=class_ or None,
    )
