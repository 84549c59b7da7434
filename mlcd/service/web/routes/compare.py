"""Runs side by side."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from mlcd.core.errors import UserError
from mlcd.reports.comparison import MOST_COMPARED, Comparison, compare
from mlcd.reports.story import Story
from mlcd.service.web.errors import error_responses, unknown_is_404
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import LONGEST, CachedViews
from mlcd.service.web.state import CurrentState
from mlcd.service.web.views import Snapshot

router = APIRouter(tags=["runs"])


@router.get("/compare", summary="Runs side by side", responses=error_responses(404, 409, 422))
async def compare_runs(
    state: CurrentState,
    views: CachedViews,
    who: Viewer,
    runs: Annotated[
        str,
        Query(
            max_length=MOST_COMPARED * LONGEST,
            description=f"Names of two to {MOST_COMPARED} runs, separated by commas.",
        ),
    ],
) -> Comparison:
    """Their answers, certificates, limits and costs, what was probed, and what differs between their jobs."""
    names = [name for name in runs.split(",") if name]
    if not 2 <= len(names) <= MOST_COMPARED:
        raise UserError(f"runs: {len(names)} given; name two to {MOST_COMPARED}, as in runs=a-1,a-2")
    with unknown_is_404():
        found = [await state.feed.find(name) for name in names]
    return await asyncio.to_thread(_compared, [await views.snapshot(name) for name in found])


def _compared(snapshots: list[Snapshot]) -> Comparison:
    return compare([(each.summary, Story.of(each.lines)) for each in snapshots])
