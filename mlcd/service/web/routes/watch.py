"""Event streams (server-sent events): of one run until it is over, or of all runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from mlcd.core.errors import MlcdError
from mlcd.service.web.answers import problems
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import RunName
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["watch"])
EVENTS = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Of an entry, its number. Nothing else has one."},
        "event": {"enum": ["entry", "progress", "state", "end"], "description": "What happened."},
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
    state: CurrentState, run: RunName, who: Viewer, after: Number = None, last_event_id: LastSeen = None
) -> StreamingResponse:
    """`entry` for each entry after the number, once and in order; `progress` of its live launches, only the newest;
    `state` when it starts or stops being driven; `end` when it is over and not driven. A comment is sent every 15 s
    while nothing happens.
    """
    await state.feed.whole(run)  # a damaged run gets an error, not an empty stream
    await state.feed.reconsider(run)
    last = _number(last_event_id, after)
    return StreamingResponse(_ended_by_errors(state.feed.watch(run, last or 0)), media_type=EVENTS, headers=HEADERS)


@router.get("/events", summary="Watch all runs", response_class=StreamingResponse, responses={**STREAM, **problems()})
async def watch_all(
    state: CurrentState, who: Viewer, after: Number = None, last_event_id: LastSeen = None
) -> StreamingResponse:
    """`entry` and `state` of every run, from now on or after the number; endless."""
    last = _number(last_event_id, after)
    return StreamingResponse(_ended_by_errors(state.feed.watch_all(last)), media_type=EVENTS, headers=HEADERS)


def _number(last_event_id: str | None, after: int | None) -> int | None:
    """The last entry that the client has: the header of a browser that reconnects, else the URL's number."""
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        return min(int(last_event_id), 2**63 - 1)
    return after


async def _ended_by_errors(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """End the stream on an error: the client reconnects from the last number it has."""
    with suppress(MlcdError):
        async for event in events:
            yield event
