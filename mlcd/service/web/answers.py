"""What the API answers with, as the OpenAPI document describes it. Nothing is sent that is not described here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from mlcd.reports.tradeoff import Point, Ranked
from mlcd.reports.view import Summary

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
Kind = Literal["train", "scale", "serve", "tune", "functions"]


class Answer(BaseModel):
    """An object of the API."""

    model_config = ConfigDict(extra="forbid")


class Problem(Answer):
    """Every answer that is no success. `left_usd`: of a budget that does not allow it, what is left."""

    error: str
    left_usd: float | None = None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: these statuses, and those that any route may answer with."""
    return {status: {"model": Problem, "description": MEANING[status]} for status in sorted({*ANY, *statuses})}


class Health(Answer):
    """The service is up, and its database can be read. `ok`: runs are driven, too; else `trouble` says why not."""

    ok: bool
    trouble: str
    version: str
    mode: Literal["ui", "service"]


class Runs(Answer):
    """Some runs; `total` and `spent_usd` are of all that pass the filters."""

    runs: list[Summary]
    total: int
    spent_usd: float


class Written(Answer):
    """An entry as the ledger keeps it."""

    seq: int
    run: str
    written_at: str
    elapsed_s: float
    entry: dict[str, Any]


class Entries(Answer):
    """The entries of a run after a number."""

    run: str
    entries: list[Written]
    driven: bool


class Row(Answer):
    """An entry in words; `spent_usd`: what was spent in all up to it."""

    seq: int
    at: str
    elapsed_s: float
    kind: str
    configuration: str
    usd: float | None
    seconds: float | None
    because: str
    spent_usd: float


class Rows(Answer):
    """A run's ledger."""

    run: str
    rows: list[Row]


class Share(Answer):
    """What a person or a team has spent; None: runs of nobody in particular."""

    name: str | None
    usd: float
    runs: int


class Month(Answer):
    """What the runs that began in a month have spent."""

    month: str
    usd: float
    runs: int


class Source(Answer):
    """What runs of one kind of cloud have spent: only that of live ones is money."""

    name: Literal["live", "simulated", "recorded"]
    usd: float
    runs: int


class Spend(Answer):
    """Where the money went, simulated and replayed money included; `by_provenance` tells them apart."""

    by_provenance: list[Source]
    by_person: list[Share]
    by_team: list[Share]
    by_month: list[Month]


class Ranges(Answer):
    """Between which ends a limit changes the decision."""

    budget: tuple[float, float] | None
    deadline: tuple[float, float] | None


class Tradeoff(Answer):
    """Time against cost of everything that is known.

    `ranking`: of an elastic run that claims no time; `points` are then of all the work, the most that can be needed.
    """

    run: str
    points: list[Point]
    ranking: list[Ranked]
    spent_usd: float
    elapsed_s: float
    budget_usd: float | None
    deadline_s: float | None
    ranges: Ranges


class Logs(Answer):
    """A piece of a log; `next`: where the next piece begins; `done`: nothing more will come."""

    launch: int
    text: str
    next: int
    done: bool


class Export(Answer):
    """Files for another tool; `notes`: what they cannot say."""

    run: str
    to: str
    main: str
    files: dict[str, str]
    notes: list[str]
