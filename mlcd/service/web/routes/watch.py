"""What happens, as server-sent events: of one run until it is over, or of all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from mlcd.core.errors import MlcdError
from mlcd.service.web.answers import problems
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import Found
from mlcd.service.web.state import Here

router = APIRouter(tags=["watch"])
EVENTS = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Of an entry, its number. Nothing else has one."},
        "event": {"enum": ["entry", "progress", "state", "end"]},
        "data": {
            "type": "string",
            "description": "JSON: what happened, to which run, and in words. Of `progress`: the `run`, and `progress` "
            "as in the run's page.",
        },
    },
    "required": ["event", "data"],
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "A stream of server-sent events.", "content": {EVENTS: {"schema": EVENT}}}
}
Number = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Only entries after this number.")]
LastSeen = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=30, description="What a browser sends when it connects again.")
]


@router.get(
    "/runs/{run}/events",
    summary="Watch a run",
    response_class=StreamingResponse,
    responses={**STREAM, **problems(404)},
)
async def watch(
    here: Here, run: Found, who: Viewer, after: Number = None, last_event_id: LastSeen = None
) -> StreamingResponse:
    """`entry` for each entry after the number, once and in order; `progress` with where its live launches stand when
    that changes, the newest alone; `state` when who drives it changes; `end` when it is over and nobody drives it.
    Comments come every 15 s while nothing happens.
    """
    await here.feed.whole(run)  # what cannot be read is told as an error, not as an empty stream
    await here.feed.reconsider(run)
    seen = _number(last_event_id, after)
    return StreamingResponse(_quietly(here.feed.watch(run, seen or 0)), media_type=EVENTS, headers=HEADERS)


@router.get("/events", summary="Watch all runs", response_class=StreamingResponse, responses={**STREAM, **problems()})
async def watch_all(here: Here, who: Viewer, after: Number = None, last_event_id: LastSeen = None) -> StreamingResponse:
    """`entry` and `state` of every run, from now on or after the number; it has no end."""
    seen = _number(last_event_id, after)
    return StreamingResponse(_quietly(here.feed.watch_all(seen)), media_type=EVENTS, headers=HEADERS)


def _number(last_event_id: str | None, after: int | None) -> int | None:
    """What was seen last: a browser that connects again knows better than its address."""
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        return min(int(last_event_id), 2**63 - 1)
    return after


async def _quietly(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream that cannot go on ends: who watches connects again from the last number it saw."""
    with suppress(MlcdError):
        async for event in events:
            yield event
