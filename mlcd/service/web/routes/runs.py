"""The list of runs, what they have spent, and each run in detail."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from mlcd.core.backend import Provenance
from mlcd.core.errors import WrongState
from mlcd.core.part import Part
from mlcd.reports.entries import ledger_rows
from mlcd.reports.run_tables import run_tables
from mlcd.reports.view.page import RunPage
from mlcd.reports.view.run_filter import Archived, RunFilter
from mlcd.reports.view.summary import REFUSED, Summary
from mlcd.reports.view.view import view_of
from mlcd.service.team.administration import moment
from mlcd.service.web.errors import STATUS_MEANINGS, error_responses, unknown_is_404
from mlcd.service.web.identity import Viewer
from mlcd.service.web.state import CurrentState
from mlcd.service.web.views import Snapshot, Views, as_json, entries_json

router = APIRouter(tags=["runs"])
OF_RUN = error_responses(404, 409)
MOST = 1_000
LONGEST = 200
JSON = "application/json"
Word = Annotated[str, Field(max_length=LONGEST)]
Status = Literal["queued", "refused", "searching", "decided", "infeasible", "running", "finished", "failed", "stopped"]
Standing = Literal[Status, "interrupted"]  # interrupted: searching or running, but no process drives it


class Runs(Part):
    """A page of the list of runs."""

    runs: list[Summary] = Field(description="The runs.")
    total: int = Field(description="How many runs pass the filters.")
    spent_usd: float = Field(description="What all runs that pass the filters have spent.")


class LedgerEntry(Part):
    """An entry of the ledger as stored."""

    seq: int = Field(description="Its number.")
    run: str = Field(description="The run's name.")
    written_at: str = Field(description="When it was written: a time of day, ISO 8601.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")
    entry: dict[str, Any] = Field(description="The entry itself; its keys depend on `kind`.")


class LedgerEntries(Part):
    """The entries of a run after a number."""

    run: str = Field(description="The run's name.")
    entries: list[LedgerEntry] = Field(description="In order.")
    driven: bool = Field(description="Whether a process drives the run now.")


class LedgerRow(Part):
    """An entry in words."""

    seq: int = Field(description="Its number.")
    at: str = Field(description="When it was written: a time of day, ISO 8601.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")
    kind: str = Field(description="What happened.")
    configuration: str = Field(description="The configuration that it is about; else empty.")
    usd: float | None = Field(description="Dollars that were reserved or paid.")
    seconds: float | None = Field(description="Seconds that were reserved or taken.")
    because: str = Field(description="Why.")
    spent_usd: float = Field(description="Dollars spent up to this entry.")


class LedgerRows(Part):
    """A run's ledger."""

    run: str = Field(description="The run's name.")
    rows: list[LedgerRow] = Field(description="Every entry, in order.")


class RunTableColumn(Part):
    """A column of a run's table."""

    name: str = Field(description="Its heading.")
    number: bool = Field(description="Whether its cells are numbers.")


class RunTable(Part):
    """A table in words."""

    title: str = Field(description="Its heading.")
    note: str = Field(description="A sentence below the heading.")
    columns: list[RunTableColumn] = Field(description="From left to right.")
    rows: list[list[str]] = Field(description="From top to bottom; each with a cell for every column.")
    total: list[str] = Field(description="The row of totals; empty if there is none.")
    chosen: list[int] = Field(description="The rows of the decision, counted from 0.")
    folded: bool = Field(description="Whether it is collapsed at first.")


class RunTables(Part):
    """All tables of a run."""

    run: str = Field(description="The run's name.")
    tables: list[RunTable] = Field(description="Those at the top of the page first.")


class SpendShare(Part):
    """What a person or a team has spent."""

    name: str | None = Field(description="The member or team; null: runs without one.")
    usd: float = Field(description="Dollars, simulated and recorded ones included.")
    live_usd: float = Field(description="Real dollars alone.")
    runs: int = Field(description="How many runs.")


class SpendMonth(Part):
    """What the runs that began in a month have spent."""

    month: str = Field(description="The month, such as 2026-11.")
    usd: float = Field(description="Dollars, simulated and recorded ones included.")
    live_usd: float = Field(description="Real dollars alone.")
    runs: int = Field(description="How many runs.")


class SpendSource(Part):
    """What runs of one kind of cloud have spent."""

    name: Literal["live", "simulated", "recorded"] = Field(description="Only live runs cost real money.")
    usd: float = Field(description="Dollars.")
    runs: int = Field(description="How many runs.")


class Spend(Part):
    """What was spent, real dollars apart from simulated and recorded ones."""

    by_provenance: list[SpendSource] = Field(description="By kind of money: real, simulated, recorded.")
    by_person: list[SpendShare] = Field(description="By member, highest first.")
    by_team: list[SpendShare] = Field(description="By team, highest first.")
    by_month: list[SpendMonth] = Field(description="By the month in which the runs began, in order.")


def views_of(request: Request) -> Views:
    """The app's cache of views."""
    views: Views = request.app.state.views
    return views


async def run_in_path(
    state: CurrentState,
    run: Annotated[str, Path(max_length=LONGEST, description="A run's name; `last` is the newest.")],
) -> str:
    """The run in the path."""
    with unknown_is_404():
        return await state.feed.find(run)


CachedViews = Annotated[Views, Depends(views_of)]
RunName = Annotated[str, Depends(run_in_path)]


def run_filter(
    status: Annotated[Standing | None, Query(description="Only those with this status.")] = None,
    owner: Annotated[Word | None, Query(description="Only those of this member.")] = None,
    team: Annotated[Word | None, Query(description="Only those of this team.")] = None,
    kind: Annotated[Word | None, Query(description="Only those of this kind, such as train.")] = None,
    project: Annotated[Word | None, Query(description="Only those of this project.")] = None,
    tag: Annotated[
        list[Word] | None, Query(max_length=20, description="Only those with this tag; repeat it for several tags.")
    ] = None,
    text: Annotated[
        Word | None, Query(description="A part of the run's or the job's name, the project, a tag or the note.")
    ] = None,
    since: Annotated[
        str | None, Query(max_length=40, description="Begun from this date or time on (ISO 8601, UTC).")
    ] = None,
    until: Annotated[
        str | None, Query(max_length=40, description="Begun up to the end of this date, or before this time.")
    ] = None,
    archived: Annotated[Archived, Query(description="no: without archived runs; only: just these; all: both.")] = "no",
) -> RunFilter:
    """The runs that are asked for."""
    times = moment(since), moment(until, end=True)
    return RunFilter(status, kind, owner, team, project, tuple(tag or ()), text or "", *times, archived)


@router.get("/runs", summary="All runs, filtered and sorted", response_model=Runs, responses=error_responses(422))
async def runs(
    state: CurrentState,
    who: Viewer,
    only: Annotated[RunFilter, Depends(run_filter)],
    order: Annotated[
        Literal["started", "spent", "name"], Query(description="Newest or most expensive first, or by name.")
    ] = "started",
    limit: Annotated[int, Query(ge=1, le=MOST, description="The most runs to return.")] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9, description="Runs to skip.")] = 0,
) -> Response:
    """Including those that wait for a worker or were refused."""
    matches = list(filter(only.passes, state.feed.summaries()))
    if order == "spent":
        matches.sort(key=lambda each: -each.spent_usd)
    elif order == "name":
        matches.sort(key=lambda each: _by_name(each.run))
    page = [{name: getattr(each, name) for name in Summary.__slots__} for each in matches[offset : offset + limit]]
    spent_usd = sum(each.spent_usd for each in matches)
    return Response(as_json({"runs": page, "total": len(matches), "spent_usd": spent_usd}), media_type=JSON)


@router.get(
    "/runs/{run}",
    summary="A run as its page shows it",
    response_model=RunPage,
    responses={304: {"description": STATUS_MEANINGS[304]}, **error_responses(404)},
)
async def view(
    run: RunName,
    views: CachedViews,
    who: Viewer,
    if_none_match: Annotated[
        str | None, Header(max_length=LONGEST, description="The `ETag` of an earlier answer.")
    ] = None,
) -> Response:
    """Everything that its page shows. `ETag` changes with its entries, its progress, and whether it is driven."""
    tag = {"ETag": views.tag(run), "Cache-Control": "private, no-cache"}
    if if_none_match == tag["ETag"]:
        return Response(status_code=304, headers=tag)
    body = views.waiting(run) or await views.rendered("view", run, _view)
    return Response(views.with_progress(run, body), media_type=JSON, headers=tag)


@router.get("/runs/{run}/entries", summary="The entries of the ledger", response_model=LedgerEntries, responses=OF_RUN)
async def entries(
    state: CurrentState,
    run: RunName,
    who: Viewer,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Only those after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="The most entries to return.")] = MOST,
) -> Response:
    """As stored in the ledger, in order. A run that waits for a worker has none yet."""
    brief, whole = state.feed.run_states[run], await state.feed.whole(run)
    if brief.summary is not None and brief.summary.status == REFUSED:
        raise WrongState(f"run '{run}' never began: {brief.summary.because}")
    selected = [line for line in whole.lines if line.seq > after][:limit] if whole is not None else []
    return Response(entries_json(run, selected, brief.driven), media_type=JSON)


@router.get("/runs/{run}/ledger", summary="The ledger in words and sums", response_model=LedgerRows, responses=OF_RUN)
async def ledger(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """Every entry with its amounts and the running total."""
    body = await views.rendered("ledger", run, lambda of: as_json({"run": of.run, "rows": ledger_rows(of.lines)}))
    return Response(body, media_type=JSON)


@router.get("/runs/{run}/tables", summary="The run as tables in words", response_model=RunTables, responses=OF_RUN)
async def tables(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """Measurements, goal and limits, the final run compared with its forecast, and how the run was made."""
    body = await views.rendered("tables", run, lambda snapshot: as_json(run_tables(snapshot.lines)))
    return Response(body, media_type=JSON)


@router.get("/spend", summary="What was spent, by person, team and month", responses=error_responses())
async def spend(state: CurrentState, who: Viewer) -> Spend:
    """Highest first; months in order. Runs without an owner are those of the command line."""
    return spend_of(state.feed.summaries())


def spend_of(summaries: Sequence[Summary]) -> Spend:
    """The spending of these runs by kind of money, member, team and month."""
    sources = _summed((each for each in summaries if each.provenance), lambda each: each.provenance)
    people, teams = _summed(summaries, lambda each: each.owner), _summed(summaries, lambda each: each.team)
    months = sorted(_summed(summaries, lambda each: each.started_at[:7]), key=lambda each: str(each["name"]))
    return Spend(
        by_provenance=[SpendSource(name=each["name"], usd=each["usd"], runs=each["runs"]) for each in sources],
        by_person=[SpendShare(**each) for each in people],
        by_team=[SpendShare(**each) for each in teams],
        by_month=[SpendMonth(month=each.pop("name"), **each) for each in months],
    )


def _view(snapshot: Snapshot) -> bytes:
    of = snapshot.summary
    page = view_of(snapshot.lines, snapshot.driven, snapshot.boundary, of.owner, of.team, snapshot.labels)
    return as_json(page)


def _by_name(run: str) -> tuple[str, int]:
    """resnet-2 comes before resnet-10."""
    stem, _, number = run.rpartition("-")
    return stem, int(number) if number.isdigit() else 0


def _summed(summaries: Iterable[Summary], key: Callable[[Summary], Any]) -> list[dict[str, Any]]:
    """What runs with the same key have spent, the highest first."""
    sums: dict[Any, dict[str, Any]] = {}
    for each in summaries:
        entry = sums.setdefault(key(each), {"name": key(each), "usd": 0.0, "live_usd": 0.0, "runs": 0})
        entry["usd"] += each.spent_usd
        entry["live_usd"] += each.spent_usd if each.provenance == Provenance.LIVE else 0.0
        entry["runs"] += 1
    return sorted(sums.values(), key=lambda each: -each["usd"])
