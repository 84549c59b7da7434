"""The list of runs, and each run in detail."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import Response

from mlcd.core.errors import WrongState
from mlcd.reports.entries import ledger_rows
from mlcd.reports.run_tables import run_tables
from mlcd.reports.view.page import RunPage
from mlcd.reports.view.summary import REFUSED, Summary, standing_of
from mlcd.reports.view.view import view_of
from mlcd.service.web.answers import MEANING, LedgerEntries, LedgerRows, Runs, Standing, problems
from mlcd.service.web.failures import unknown_is_404
from mlcd.service.web.identity import Viewer
from mlcd.service.web.state import CurrentState
from mlcd.service.web.table_answers import RunTables
from mlcd.service.web.views import Seen, Views, as_json, entries_json

router = APIRouter(tags=["runs"])
MOST = 1_000
LONGEST = 200
JSON = "application/json"


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


@router.get("/runs", summary="All runs, filtered and sorted", response_model=Runs, responses=problems())
async def runs(
    state: CurrentState,
    who: Viewer,
    status: Annotated[Standing | None, Query(description="Only those that stand so.")] = None,
    owner: Annotated[str | None, Query(max_length=LONGEST, description="Only those of this member.")] = None,
    kind: Annotated[
        str | None, Query(max_length=LONGEST, description="Only those of this kind, such as train.")
    ] = None,
    text: Annotated[str | None, Query(max_length=LONGEST, description="A part of the run's or the job's name.")] = None,
    order: Annotated[
        Literal["started", "spent", "name"], Query(description="Newest or most expensive first, or by name.")
    ] = "started",
    limit: Annotated[int, Query(ge=1, le=MOST, description="Runs at the most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9, description="Runs to pass over.")] = 0,
) -> Response:
    """Including those that wait for a worker or were refused."""
    pattern = (text or "").lower()
    matches = [
        each
        for each in state.feed.summaries()
        if (status is None or status in (each.status, standing_of(each.status, each.driven)))
        and (owner is None or each.owner == owner)
        and (kind is None or each.kind == kind)
        and (pattern in each.run.lower() or pattern in each.job.lower())
    ]
    if order == "spent":
        matches.sort(key=lambda each: -each.spent_usd)
    elif order == "name":
        matches.sort(key=lambda each: _by_name(each.run))
    page = [_document(each) for each in matches[offset : offset + limit]]
    spent_usd = sum(each.spent_usd for each in matches)
    return Response(as_json({"runs": page, "total": len(matches), "spent_usd": spent_usd}), media_type=JSON)


@router.get(
    "/runs/{run}",
    summary="A run as its page shows it",
    response_model=RunPage,
    responses={304: {"description": MEANING[304]}, **problems(404)},
)
async def view(
    run: RunName,
    views: CachedViews,
    who: Viewer,
    if_none_match: Annotated[
        str | None, Header(max_length=LONGEST, description="The `ETag` that was answered.")
    ] = None,
) -> Response:
    """Everything that is known of it. `ETag` changes with its entries, its progress, and whether it is driven."""
    tag = {"ETag": views.tag(run), "Cache-Control": "private, no-cache"}
    if if_none_match == tag["ETag"]:
        return Response(status_code=304, headers=tag)
    body = views.waiting(run) or await views.made("view", run, _view)
    return Response(views.with_progress(run, body), media_type=JSON, headers=tag)


@router.get(
    "/runs/{run}/entries",
    summary="The entries of the ledger",
    response_model=LedgerEntries,
    responses=problems(404, 409),
)
async def entries(
    state: CurrentState,
    run: RunName,
    who: Viewer,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Only those after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Entries at the most.")] = MOST,
) -> Response:
    """As stored in the ledger, in order. A run that waits for a worker has none yet."""
    brief, whole = state.feed.brief(run), await state.feed.whole(run)
    if brief.summary is not None and brief.summary.status == REFUSED:
        raise WrongState(f"run '{run}' never began: {brief.summary.because}")
    selected = [line for line in whole.lines if line.seq > after][:limit] if whole is not None else []
    return Response(entries_json(run, selected, brief.driven), media_type=JSON)


@router.get(
    "/runs/{run}/ledger",
    summary="The ledger in words and sums",
    response_model=LedgerRows,
    responses=problems(404, 409),
)
async def ledger(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """Every entry with its amounts and the running total."""
    return Response(await views.made("ledger", run, _ledger), media_type=JSON)


@router.get(
    "/runs/{run}/tables", summary="The run as tables in words", response_model=RunTables, responses=problems(404, 409)
)
async def tables(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """What was measured, what is asked, the final run against its forecast, and how the run was made."""
    return Response(await views.made("tables", run, lambda seen: as_json(run_tables(seen.lines))), media_type=JSON)


def _view(seen: Seen) -> bytes:
    return as_json(view_of(seen.lines, seen.driven, seen.boundary, seen.owner, seen.team))


def _ledger(seen: Seen) -> bytes:
    return as_json({"run": seen.run, "rows": ledger_rows(seen.lines)})


def _document(summary: Summary) -> dict[str, object]:
    return {name: getattr(summary, name) for name in Summary.__slots__}


def _by_name(run: str) -> tuple[str, int]:
    """resnet-2 comes before resnet-10."""
    stem, _, number = run.rpartition("-")
    return stem, int(number) if number.isdigit() else 0
