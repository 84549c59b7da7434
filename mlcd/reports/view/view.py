"""Everything a run's page shows, in one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcd.core.ledger import Line
from mlcd.planners.functions.nouns import Planned
from mlcd.reports.answer import newest_warnings
from mlcd.reports.document import document_of
from mlcd.reports.run_document import NotBegun, Told
from mlcd.reports.story import Story
from mlcd.reports.view.page import RunPage
from mlcd.reports.view.path import path, spending
from mlcd.reports.view.standing import actions, answer, certificate, next_words, under_way
from mlcd.reports.view.summary import QUEUED, Summary, summary_of


def view_of(
    lines: Sequence[Line],
    driven: bool = False,
    boundary: Sequence[Planned] = (),
    owner: str | None = None,
    team: str | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """A run that has begun, from all its entries. `boundary`: of a run on functions, one epoch's.

    Only `progress` is not there: the ledger does not know it.
    """
    story = Story.of(lines)
    summary = summary_of(story.run, lines[0].written_at, story.account, driven, owner, team, last_reason(lines))
    return _page(
        summary=summary,
        **answer(story),
        path=path(story),
        spend=spending(story),
        under_way=under_way(story),
        warnings=newest_warnings(story),
        certificate=certificate(story),
        next=next_words(story, driven),
        actions=actions(story.account, driven),
        document=document_of(story, boundary, told),
    )


def waiting_view(summary: Summary) -> dict[str, Any]:
    """A run that was asked for and has not begun, or never will."""
    queued = summary.status == QUEUED
    sentence = "Waiting for a worker." if queued else f"It never began: {summary.because}."
    return _page(
        summary=summary,
        answer={"sentence": sentence, "more": ""},
        cards=[],
        path=[],
        spend={"budget_usd": summary.budget_usd, "deadline_s": summary.deadline_s, "points": []},
        under_way=[],
        warnings=[],
        certificate=None,
        next="it begins when a worker is free" if queued else f"it never began: {summary.because}",
        actions=["stop"] if queued else [],
        document=NotBegun(run=summary.run, status=summary.status, job=summary.job),
    )


def _page(**fields: Any) -> dict[str, Any]:
    return RunPage(**fields).model_dump(mode="json", exclude={"progress"})


def last_reason(lines: Sequence[Line]) -> str:
    """Why the last thing was done that has a reason."""
    return next((said for line in reversed(lines) if (said := reason_of(line))), "")


def reason_of(line: Line) -> str:
    """The reason that an entry gives; '' where it gives none."""
    decided = getattr(line.entry, "decision", None)
    said: str = decided.because if decided is not None else getattr(line.entry, "because", "")
    return said
