"""Streams of server-sent events: of one run until it is over, or of all runs.

Each stream remembers the number of the last entry it sent. So there is no queue that could overflow: a slow client
reads later. Progress has no number: a slow client gets only the newest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mlcd.service.web.ledger_poller import LedgerPoller
from mlcd.service.web.run_cache import NOTHING, frame, progress_frame, state_frame, state_of

PING_S = 15.0
PING = b": ping\n\n"


async def of_run(poller: LedgerPoller, run: str, after: int, ping_s: float) -> AsyncIterator[bytes]:
    """The entries of a run after this number, each once and in order, until it is over and not driven."""
    brief, driven, progress = poller.briefs[run], None, NOTHING
    while True:
        changed = brief.changed
        whole = await poller.whole(run)
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


async def of_all(poller: LedgerPoller, after: int | None, ping_s: float) -> AsyncIterator[bytes]:
    """The entries of all runs after this number, or from now on; endless."""
    after = poller.last if after is None else after
    at = poller.recent.position_after(after)
    while True:
        changed = poller.recent.changed
        if at is None:  # older than what is cached: read from the ledger
            end, last = poller.recent.end, poller.last
            for line in (line for line in await poller.since(after) if line.seq <= last):
                after = line.seq
                yield await poller.sent(line)
            at = end if after >= last else None
            continue
        new = poller.recent.from_(at)
        if new is None:
            at = None
            continue
        at += len(new)
        if sent := b"".join(event for seq, event in new if seq is None or seq > after):
            yield sent
        after = max(after, *(seq or 0 for seq, _ in new)) if new else after
        if poller.recent.changed is changed and not await _within(changed, ping_s):
            yield PING


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came within this time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
