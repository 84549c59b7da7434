"""Everything a run's page shows, in one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlcd.core.ledger import Line
from mlcd.planners.functions.nouns import Planned
from mlcd.reports.answer import newest_warnings
from mlcd.reports.document import run_document
from mlcd.reports.story import Story
from mlcd.reports.view.kinds import functions, serving
from mlcd.reports.view.path import path, refusals, spending
from mlcd.reports.view.standing import actions, answer, certificate, next_words, under_way
from mlcd.reports.view.summary import QUEUED, Summary, summary_of


def view_of(
    lines: Sequence[Line],
    driven: bool = False,
    boundary: Sequence[Planned] = (),
    owner: str | None = None,
    team: str | None = None,
) -> dict[str, Any]:
    """A run that has begun, from all its entries. `boundary`: of a run on functions, one epoch's."""
    story = Story.of(lines)
    summary = summary_of(story.run, lines[0].written_at, story.account, driven, owner, team, last_reason(lines))
    return {
        "summary": asdict(summary),
        **answer(story),
        "path": path(story),
        "spend": spending(story),
        "under_way": under_way(story),
        "warnings": newest_warnings(story),
        "certificate": certificate(story),
        "refusals": refusals(story),
        "next": next_words(story, driven),
        "actions": actions(story.account, driven),
        "serving": serving(story),
        "functions": functions(story, boundary),
        "document": run_document(lines, boundary),
    }


def waiting_view(summary: Summary) -> dict[str, Any]:
    """A run that was asked for and has not begun, or never will."""
    queued = summary.status == QUEUED
    sentence = "Waiting for a worker." if queued else f"It never began: {summary.because}."
    return {
        "summary": asdict(summary),
        "answer": {"sentence": sentence, "more": ""},
        "cards": [],
        "path": [],
        "spend": {"budget_usd": summary.budget_usd, "deadline_s": summary.deadline_s, "points": []},
        "under_way": [],
        "warnings": [],
        "certificate": None,
        "refusals": [],
        "next": "it begins when a worker is free" if queued else f"it never began: {summary.because}",
        "actions": ["stop"] if queued else [],
        "serving": None,
        "functions": None,
        "document": {"run": summary.run, "status": summary.status, "job": summary.job},
    }


def last_reason(lines: Sequence[Line]) -> str:
    """Why the last thing was done that has a reason."""
    return next((said for line in reversed(lines) if (said := reason_of(line))), "")


def reason_of(line: Line) -> str:
    """The reason that an entry gives; '' where it gives none."""
    decided = getattr(line.entry, "decision", None)
    said: str = decided.because if decided is not None else getattr(line.entry, "because", "")
    return said
