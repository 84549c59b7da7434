"""Streams of server-sent events: what happens in one run until it is over, or in all of them.

Each watcher reads from the number of the last entry it was sent. So nobody has a queue that could overflow: who is slow
reads later. How far a job is has no number: who is slow is told the newest alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mlcd.service.web.known import NOTHING, frame, progress_frame, state_frame, state_of
from mlcd.service.web.polled import Polled

PING_S = 15.0
PING = b": ping\n\n"


async def of_run(known: Polled, run: str, after: int, ping_s: float) -> AsyncIterator[bytes]:
    """The entries of a run after this number, each once and in order, until it is over and nobody drives it."""
    brief, driven, progress = known.briefs[run], None, NOTHING
    while True:
        changed = brief.changed
        whole = await known.whole(run)
        if whole is not None and (new := whole.after(after)):
            after = new[-1][0]
            yield b"".join(sent for _, sent in new)
        if progress != brief.progress:
            progress = brief.progress
            yield progress_frame(brief)
        if brief.changed is not changed:  # more has come while that was sent
            continue
        if brief.over:
            yield frame("end", state_of(brief))
            return
        if driven is not None and driven != brief.driven:
            yield state_frame(brief)
        driven = brief.driven
        if not await _within(changed, ping_s):
            yield PING


async def of_all(known: Polled, after: int | None, ping_s: float) -> AsyncIterator[bytes]:
    """The entries of all runs after this number, or from now on; without end."""
    after = known.last if after is None else after
    at = known.recent.place_after(after)
    while True:
        changed = known.recent.changed
        if at is None:  # before what is kept: the ledger has it
            end, last = known.recent.end, known.last
            for line in (line for line in await known.since(after) if line.seq <= last):
                after = line.seq
                yield await known.sent(line)
            at = end if after >= last else None
            continue
        new = known.recent.from_(at)
        if new is None:
            at = None
            continue
        at += len(new)
        if sent := b"".join(event for seq, event in new if seq is None or seq > after):
            yield sent
        after = max(after, *(seq or 0 for seq, _ in new)) if new else after
        if known.recent.changed is changed and not await _within(changed, ping_s):
            yield PING


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
