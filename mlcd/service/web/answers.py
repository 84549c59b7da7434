"""What the API answers with, as the OpenAPI document describes it. Nothing is sent that is not described here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from mlcd.reports.run_document.core import RunDecision
from mlcd.reports.run_document.part import Part
from mlcd.reports.run_document.serve import ServeDecision
from mlcd.reports.run_document.tune import TuneDecision
from mlcd.reports.tradeoff import Ranked, TradeoffPoint
from mlcd.reports.view.page import Certificate
from mlcd.reports.view.summary import Summary

MEANING = {
    304: "It has not changed since the `ETag` that was sent.",
    400: "The request is malformed: a parameter or the body is not what the document says.",
    401: "No token or session, or a wrong one.",
    403: "The member's role does not allow this, or the request comes from another site.",
    404: "There is no such thing.",
    405: "This path has no such method.",
    409: "The run is not in a state that allows this, or a budget does not.",
    413: "The body is too large.",
    415: "The body is of a type that is not read here.",
    422: "What was sent can be read, and cannot be used: the line says why.",
    429: "Too many requests; `Retry-After` says when to come again.",
    503: "The database cannot be reached.",
}
ANY = (400, 401, 403, 429, 503)
"""What every route but /health may answer with."""
Status = Literal["queued", "refused", "searching", "decided", "infeasible", "running", "finished", "failed", "stopped"]
Standing = Literal[Status, "interrupted"]
"""A status, or that of a run that searches or runs and that nobody drives."""


class Answer(Part):
    """An object of the API."""


class Problem(BaseModel):
    """Every answer that is no success."""

    error: str = Field(description="What is wrong, and what to do, in one line.")
    left_usd: float | None = Field(default=None, description="What is left of a budget that does not allow it.")
    asks: str | None = Field(default=None, description="What a run may cost that nobody has agreed to yet.")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: these statuses, and those that any route may answer with."""
    return {status: {"model": Problem, "description": MEANING[status]} for status in sorted({*ANY, *statuses})}


class Health(Answer):
    """The service is up, and its database can be read."""

    ok: bool = Field(description="Whether runs are driven, too.")
    trouble: str = Field(description="Why not; else empty.")
    version: str = Field(description="The version of MLCD.")
    mode: Literal["ui", "service"] = Field(description="Whether it is one person's, or a team's.")


class Runs(Answer):
    """Some runs."""

    runs: list[Summary] = Field(description="Those that were asked for.")
    total: int = Field(description="How many pass the filters.")
    spent_usd: float = Field(description="What all that pass the filters have spent.")


class LedgerEntry(Answer):
    """An entry as the ledger keeps it."""

    seq: int = Field(description="Its number.")
    run: str = Field(description="The run that it is of.")
    written_at: str = Field(description="When it was written: a time of day, ISO 8601.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")
    entry: dict[str, Any] = Field(description="What it says; `kind` tells what else it has.")


class LedgerEntries(Answer):
    """The entries of a run after a number."""

    run: str = Field(description="The run's name.")
    entries: list[LedgerEntry] = Field(description="In order.")
    driven: bool = Field(description="Whether a process drives the run now.")


class LedgerRow(Answer):
    """An entry in words."""

    seq: int = Field(description="Its number.")
    at: str = Field(description="When it was written: a time of day, ISO 8601.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")
    kind: str = Field(description="What happened.")
    configuration: str = Field(description="What it is about; else empty.")
    usd: float | None = Field(description="Dollars that were reserved or paid.")
    seconds: float | None = Field(description="Seconds that were reserved or taken.")
    because: str = Field(description="Why.")
    spent_usd: float = Field(description="Dollars spent in all up to it.")


class LedgerRows(Answer):
    """A run's ledger."""

    run: str = Field(description="The run's name.")
    rows: list[LedgerRow] = Field(description="Every entry, in order.")


class SpendShare(Answer):
    """What a person or a team has spent."""

    name: str | None = Field(description="Who; null: runs of nobody in particular.")
    usd: float = Field(description="Dollars.")
    runs: int = Field(description="How many runs.")


class SpendMonth(Answer):
    """What the runs that began in a month have spent."""

    month: str = Field(description="The month, such as 2026-11.")
    usd: float = Field(description="Dollars.")
    runs: int = Field(description="How many runs.")


class SpendSource(Answer):
    """What runs of one kind of cloud have spent."""

    name: Literal["live", "simulated", "recorded"] = Field(description="Only what is live costs money.")
    usd: float = Field(description="Dollars.")
    runs: int = Field(description="How many runs.")


class Spend(Answer):
    """Where the money went, simulated and replayed money included."""

    by_provenance: list[SpendSource] = Field(description="Real money apart from simulated and recorded.")
    by_person: list[SpendShare] = Field(description="The dearest first.")
    by_team: list[SpendShare] = Field(description="The dearest first.")
    by_month: list[SpendMonth] = Field(description="In order.")


class LimitRanges(Answer):
    """Between which ends a limit changes the decision."""

    budget: tuple[float, float] | None = Field(description="Dollars; null where nothing is known.")
    deadline: tuple[float, float] | None = Field(description="Seconds; null where nothing is known.")


class Tradeoff(Answer):
    """Time against cost of everything that is known."""

    run: str = Field(description="The run's name.")
    points: list[TradeoffPoint] = Field(description="The fastest first.")
    ranking: list[Ranked] = Field(
        description="Of an elastic run that claims no time; `points` are then of all the work, the most it can need."
    )
    spent_usd: float = Field(description="What the search cost.")
    elapsed_s: float = Field(description="What the search took.")
    budget_usd: float | None = Field(description="The run's budget; null for no limit.")
    deadline_s: float | None = Field(description="The run's deadline; null for no limit.")
    ranges: LimitRanges = Field(description="For sliders.")


class WhatIf(Answer):
    """What would have been decided under another goal."""

    run: str = Field(description="The run's name.")
    goal: str = Field(description="The objective.")
    goal_words: str = Field(description="All that is asked, in words.")
    decision: ServeDecision | TuneDecision | RunDecision = Field(
        description="What `mlcd what-if -o json` prints of it."
    )
    label: str | None = Field(description="What is chosen, as the trade-off names it.")
    words: str = Field(description="The decision in a sentence.")
    certificate: Certificate | None = Field(description="What makes it safe.")


class Logs(Answer):
    """A piece of a log."""

    launch: int = Field(description="Which launch of the run it is of.")
    text: str = Field(description="What was written.")
    next: int = Field(description="Where the next piece begins.")
    done: bool = Field(description="Whether nothing more will come.")


class Export(Answer):
    """Files for another tool."""

    run: str = Field(description="The run's name.")
    to: str = Field(description="The tool.")
    main: str = Field(description="The file to begin with.")
    files: dict[str, str] = Field(description="The text of each file, by its name.")
    notes: list[str] = Field(description="What the files cannot say.")
