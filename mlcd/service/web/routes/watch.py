"""Event streams (server-sent events): of one run until it is over, or of all runs.

Each stream remembers the number of the last entry it sent. So there is no queue that could overflow: a slow client
reads later. Progress has no number: a slow client gets only the newest.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from mlcd.core.errors import MlcdError
from mlcd.service.web.errors import error_responses
from mlcd.service.web.feed import Feed
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import RunName
from mlcd.service.web.run_cache import NOTHING, frame, progress_frame, state_frame, state_of
from mlcd.service.web.state import CurrentState

PING_S = 15.0
PING = b": ping\n\n"
router = APIRouter(tags=["watch"])
EVENTS = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_DATA = "JSON: the event, its run, and words. For `progress`: the `run`, and `progress` as in GET /runs/{run}."
EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The number of an entry; other events have none."},
        "event": {"enum": ["entry", "progress", "state", "end"], "description": "What happened."},
        "data": {"type": "string", "description": _DATA},
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
    responses={**STREAM, **error_responses(404)},
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
    return StreamingResponse(_ended_by_errors(of_run(state.feed, run, last or 0)), media_type=EVENTS, headers=HEADERS)


@router.get(
    "/events", summary="Watch all runs", response_class=StreamingResponse, responses={**STREAM, **error_responses()}
)
async def watch_all(
    state: CurrentState, who: Viewer, after: Number = None, last_event_id: LastSeen = None
) -> StreamingResponse:
    """`entry` and `state` events of all runs, from now on or after the number; endless."""
    last = _number(last_event_id, after)
    return StreamingResponse(_ended_by_errors(of_all(state.feed, last)), media_type=EVENTS, headers=HEADERS)


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


async def of_run(feed: Feed, run: str, after: int = 0, ping_s: float = PING_S) -> AsyncIterator[bytes]:
    """The entries of a run after this number, each once and in order, until it is over and not driven."""
    brief, driven, progress = feed.run_states[run], None, NOTHING
    while True:
        changed = brief.changed
        whole = await feed.whole(run)
        if whole is not None and (new := whole.after(after)):
            after = new[-1][0]
            yield b"".join(sent for _, sent in new)
        if progress != brief.progress:
            progress = brief.progress
            yield progress_frame(brief)
        if brief.changed is not changed:  # more arrived while that was sent
            continue
        if brief.over:
            yield frame("end", state_of(brief))
            return
        if driven is not None and driven != brief.driven:
            yield state_frame(brief)
        driven = brief.driven
        if not await _within(changed, ping_s):
            yield PING


async def of_all(feed: Feed, after: int | None = None, ping_s: float = PING_S) -> AsyncIterator[bytes]:
    """The entries of all runs after this number, or from now on; endless."""
    after = feed.last if after is None else after
    at = feed.recent.position_after(after)
    while True:
        changed = feed.recent.changed
        if at is None:  # older than what is cached: read from the ledger
            end, last = feed.recent.end, feed.last
            for line in (line for line in await feed.since(after) if line.seq <= last):
                after = line.seq
                yield await feed.sent(line)
            at = end if after >= last else None
            continue
        new = feed.recent.from_(at)
        if new is None:
            at = None
            continue
        at += len(new)
        if sent := b"".join(event for seq, event in new if seq is None or seq > after):
            yield sent
        after = max(after, *(seq or 0 for seq, _ in new)) if new else after
        if feed.recent.changed is changed and not await _within(changed, ping_s):
            yield PING


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came within this time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
