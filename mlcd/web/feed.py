"""The feed: one reader of the ledger for everybody who looks, and for everybody who watches.

One task asks the ledger every 150 ms what is new, whatever the number of watchers. It keeps a summary of every run
and the entries of those in use; watchers read from there, each from the number of the last entry it was sent. So
nobody has a queue that could overflow: who is slow reads later, and what has left the memory by then is read from the
ledger again. Each entry is put into words and bytes once.

A database that is away is waited for; meanwhile what is known is still told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from mlcd.errors import LedgerCorrupt, LedgerError, MlcdError, UnknownName
from mlcd.ledger import Ledger, Line, Status
from mlcd.ledger.account import BrokenBooks
from mlcd.reports.view import Summary, summary_of
from mlcd.reports.view.summary import QUEUED, REFUSED
from mlcd.web.known import MOST_LINES, Brief, Shelf, Whole, frame
from mlcd.web.recent import Recent
from mlcd.web.waiting import launch_asked, waiting_summaries

POLL_S = 0.15
LOOK_AGAIN_S = 0.6
"""How often it is asked who drives what, and what waits: that changes without an entry."""
LONGEST_PAUSE_S = 5.0
"""Between two attempts while the database is away."""
EXPECTED_S = 60.0
"""Within which a worker that was sent drives its run."""
ASK_AGAIN_S = 5.0
"""How often it is asked whether a decision is still to be run."""
PING_S = 15.0
BATCH = 1_000
Read = TypeVar("Read")
_LOG = logging.getLogger("mlcd.web.feed")


class Feed:
    """What happens in a ledger. Everything but `__init__` belongs to the app's event loop."""

    def __init__(self, ledger: Ledger, *, poll_s: float = POLL_S, most_lines: int = MOST_LINES) -> None:
        self._ledger = ledger
        self._poll_s = poll_s
        self._shelf = Shelf(most_lines)
        self._briefs: dict[str, Brief] = {}
        self._owners: dict[str, tuple[str | None, str | None]] = {}
        self._recent = Recent()
        self._loading: dict[str, asyncio.Future[Whole]] = {}
        self._last = 0
        self._polling = asyncio.Lock()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="feed")  # never behind what makes pages
        self._looked_at = float("-inf")
        self.away = ""
        """Why the ledger cannot be read now; '' while it can."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read for as long as this is open; what is there already has been read when it opens, if it can be."""
        with suppress(MlcdError):
            await self.catch_up()
        task = asyncio.create_task(self._forever())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Wait for reads that are under way: only then may the ledger be closed, which is not the feed's."""
        self._readers.shutdown(cancel_futures=True)

    @property
    def last(self) -> int:
        """The number of the newest entry that is known."""
        return self._last

    @property
    def lines_kept(self) -> int:
        """How many entries are in memory."""
        return len(self._shelf)

    def summaries(self) -> list[Summary]:
        """Every run, the newest first; those that wait and were refused are among them."""
        return [brief.summary for brief in reversed(self._briefs.values()) if brief.summary is not None]

    async def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest. One that was asked for a moment ago is looked for."""
        if run not in self._briefs:
            await self.look()
        if run == "last" and self._briefs:
            return next(reversed(self._briefs))
        if run not in self._briefs:
            raise UnknownName("run", run, self._briefs)
        return run

    def brief(self, run: str) -> Brief:
        """What is kept of a run that was found."""
        return self._briefs[run]

    async def whole(self, run: str) -> Whole | None:
        """All entries of a run that was found; None while it has none."""
        brief = self._briefs[run]
        found = self._shelf.get(run)
        while brief.last and (found is None or found.last < brief.last):
            found = await self._load(run)
        return found

    async def _load(self, run: str) -> Whole:
        """Read a run; once for all who wait for it."""
        if (task := self._loading.get(run)) is None:
            task = self._loading[run] = asyncio.ensure_future(self._in_thread(self._read_whole, run))
            task.add_done_callback(lambda _: self._loading.pop(run))
        loaded, found = await asyncio.shield(task), self._shelf.get(run)
        if found is None or found.last < loaded.last:
            self._shelf.put(run, loaded)
            return loaded
        return found

    def _read_whole(self, run: str) -> Whole:
        return Whole.of(self._ledger.lines(run))

    async def catch_up(self) -> None:
        """Read what is new, now."""
        async with self._polling:
            await self._read(looks=asyncio.get_running_loop().time() - self._looked_at >= LOOK_AGAIN_S)

    async def look(self) -> None:
        """Read what is new, who drives what, and what waits, now."""
        async with self._polling:
            await self._read(looks=True)

    async def watch(self, run: str, after: int = 0, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The entries of a run after this number, each once and in order, until it is over and nobody drives it."""
        brief, told = self._briefs[run], None
        while True:
            changed = brief.changed
            whole = await self.whole(run)
            if whole is not None and (new := whole.after(after)):
                after = new[-1][0]
                yield b"".join(sent for _, sent in new)
            if brief.changed is not changed:  # more has come while that was sent
                continue
            if brief.over:
                yield frame("end", _state(brief))
                return
            if told is not None and told != brief.driven:
                yield frame("state", _state(brief))
            told = brief.driven
            if not await _within(changed, ping_s):
                yield b": ping\n\n"

    async def watch_all(self, after: int | None = None, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The entries of all runs after this number, or from now on; without end."""
        after = self._last if after is None else after
        at = self._recent.place_after(after)
        while True:
            changed = self._recent.changed
            if at is None:  # before what is kept: the ledger has it
                end, known = self._recent.end, self._last
                lines = await self._in_thread(self._ledger.since, after, BATCH)
                for line in (line for line in lines if line.seq <= known):
                    after = line.seq
                    yield await self._sent(line)
                at = end if after >= known else None
                continue
            new = self._recent.from_(at)
            if new is None:
                at = None
                continue
            at += len(new)
            if sent := b"".join(event for seq, event in new if seq is None or seq > after):
                yield sent
            after = max(after, *(seq or 0 for seq, _ in new)) if new else after
            if self._recent.changed is changed and not await _within(changed, ping_s):
                yield b": ping\n\n"

    async def _sent(self, line: Line) -> bytes:
        """An old entry as it is sent; nothing where its run cannot be read any more."""
        with suppress(LedgerCorrupt, BrokenBooks):
            whole = await self.whole(line.run)
            return next((sent for seq, sent in whole.after(line.seq - 1) if seq == line.seq), b"") if whole else b""
        return b""

    async def _in_thread(self, read: Callable[..., Read], *arguments: object) -> Read:
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(read, *arguments))

    async def _forever(self) -> None:
        pause_s = self._poll_s
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self.catch_up()
            except Exception as error:
                if not self.away:
                    _LOG.warning("the ledger cannot be read; waiting for it: %s", error)
                    if not isinstance(error, LedgerError):
                        _LOG.error("that was not expected", exc_info=error)
                self.away = str(error) or type(error).__name__
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
            else:
                if self.away:
                    _LOG.warning("the ledger can be read again")
                self.away, pause_s = "", self._poll_s

    async def _read(self, looks: bool) -> None:
        """Who drives what is asked first: a driver that is gone has written all its entries by then."""
        driven = await self._in_thread(self._ledger.driven) if looks else None
        fresh: set[str] = set()
        while True:
            lines = await self._in_thread(self._ledger.since, self._last, BATCH)
            if lines and any(line.run not in self._briefs for line in lines):
                self._owners |= await self._in_thread(self._ledger.owners)
            for line in lines:
                fresh.add(line.run)
                await self._take(line)
            if len(lines) < BATCH:
                break
        if driven is not None:
            self._looked_at = asyncio.get_running_loop().time()
            fresh |= await self._now_driven(driven)
            fresh |= await self._now_waiting()
        self._shelf.trim()
        for run in fresh:
            self._briefs[run].wake()
        if fresh:
            self._recent.wake()

    async def _take(self, line: Line) -> None:
        """An entry that is new."""
        brief = self._briefs.get(line.run)
        if brief is None or not brief.last:
            self._briefs.pop(line.run, None)  # one that waited is as new as its first entry
            brief = self._briefs[line.run] = brief or Brief(line.run)
            self._shelf.put(line.run, Whole())
        brief.last, brief.over, brief.expected_until_s = line.seq, False, 0.0
        try:
            whole = self._shelf.get(line.run) or await self._load(line.run)
            whole.add(line)
        except (BrokenBooks, LedgerCorrupt) as error:
            brief.damaged = str(error)
            self._shelf.drop(line.run)
        else:
            self._sum_up(brief, whole)
            self._recent.add(line.seq, whole.frames[whole.seqs.index(line.seq)])
        self._last = line.seq  # not before: if the database goes away meanwhile, this entry is read again

    def _sum_up(self, brief: Brief, whole: Whole) -> None:
        owner, team = self._owners.get(brief.run, (None, None))
        begun_at = whole.lines[0].written_at
        brief.summary = summary_of(brief.run, begun_at, whole.account, brief.driven, owner, team, whole.reason)

    async def _now_driven(self, driven: set[str]) -> set[str]:
        """Who is driven now; the runs of which that has changed, or that are over since."""
        changed = set()
        for run, brief in list(self._briefs.items()):
            if brief.summary is None or not brief.last:
                continue
            if brief.driven != (run in driven):
                brief.driven = run in driven
                brief.summary, brief.expected_until_s = replace(brief.summary, driven=brief.driven), 0.0
                self._recent.add(None, frame("state", _state(brief)))
                changed.add(run)
            if not brief.over and not brief.driven and not brief.active and not await self._due(brief):
                brief.over = True
                changed.add(run)
        return changed

    async def reconsider(self, run: str) -> None:
        """Before a run is watched: one that was over may have been asked to go on since."""
        brief = self._briefs[run]
        if brief.over and await self._due(brief):
            brief.over = False

    def expect(self, run: str) -> None:
        """Somebody is about to drive this run, who was sent a moment ago. Any thread may say so."""
        if (brief := self._briefs.get(run)) is not None:
            brief.expected_until_s, brief.over = time.monotonic() + EXPECTED_S, False

    async def _due(self, brief: Brief) -> bool:
        """Whether somebody is about to drive it: who was sent just now, or a worker that has to run its decision."""
        if time.monotonic() < brief.expected_until_s:
            return True
        if brief.summary is None or brief.summary.status != Status.DECIDED or brief.summary.kind == "serve":
            return False
        due = await self._in_thread(launch_asked, self._ledger, brief.run)
        brief.expected_until_s = time.monotonic() + ASK_AGAIN_S if due else 0.0
        return due

    async def _now_waiting(self) -> set[str]:
        """What was asked for and has not begun; the runs of which something is new."""
        changed = set()
        for summary in await self._in_thread(waiting_summaries, self._ledger):
            brief = self._briefs.setdefault(summary.run, Brief(summary.run))
            if not brief.last and brief.summary != summary:
                self._owners[summary.run] = (summary.owner, summary.team)
                brief.summary, brief.over = summary, summary.status == REFUSED
                self._recent.add(None, frame("state", _state(brief)))
                changed.add(summary.run)
        return changed


def _state(brief: Brief) -> dict[str, object]:
    summary = brief.summary
    status, because = (summary.status, summary.because) if summary is not None else (QUEUED, "")
    return {"run": brief.run, "status": status, "driven": brief.driven, "because": because}


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
