"""What is known of the ledger's runs: read from it again and again, by one reader for everybody.

A summary of every run is kept, and the entries of those in use; what has left the memory is read from the ledger again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from mlcd.core.backend import Provenance
from mlcd.core.errors import LedgerCorrupt
from mlcd.core.ledger import Ledger, Line, Status, Unreadable
from mlcd.core.ledger.account import BrokenBooks
from mlcd.reports.headway import from_json, to_json
from mlcd.reports.view import summary_of
from mlcd.reports.view.summary import REFUSED
from mlcd.service.web.known import NOTHING, Brief, Shelf, Whole, state_frame
from mlcd.service.web.recent import Recent
from mlcd.service.web.waiting import launch_asked, waiting_summaries

LOOK_AGAIN_S = 0.6
"""How often it is asked who drives what, how far that is, and what waits: that changes without an entry."""
ASK_AGAIN_S = 5.0
"""How often it is asked whether a decision is still to be run."""
BATCH = 1_000
DAMAGED = "damaged: restore the ledger from a copy"
Read = TypeVar("Read")


class Polled:
    """Runs as they were when the ledger was read last. It belongs to one event loop, and reads in threads."""

    def __init__(self, ledger: Ledger, most_lines: int) -> None:
        self.briefs: dict[str, Brief] = {}
        self.recent = Recent()
        self.last = 0
        """The number of the newest entry that is known."""
        self._ledger = ledger
        self._shelf = Shelf(most_lines)
        self._owners: dict[str, tuple[str | None, str | None]] = {}
        self._loading: dict[str, asyncio.Future[Whole]] = {}
        self._polling = asyncio.Lock()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="feed")  # never behind what makes pages
        self._looked_at = float("-inf")

    def close(self) -> None:
        """Wait for reads that are under way: only then may the ledger be closed, which is not the feed's."""
        self._readers.shutdown(cancel_futures=True)

    async def catch_up(self) -> None:
        """Read what is new, now."""
        async with self._polling:
            await self._read(looks=asyncio.get_running_loop().time() - self._looked_at >= LOOK_AGAIN_S)

    async def look(self) -> None:
        """Read what is new, who drives what and how far that is, and what waits, now."""
        async with self._polling:
            await self._read(looks=True)

    async def whole(self, run: str) -> Whole | None:
        """All entries of a run that was found; None while it has none."""
        brief = self.briefs[run]
        found = self._shelf.get(run)
        while brief.last and (found is None or found.last < brief.last):
            found = await self._load(run)
        return found

    async def sent(self, line: Line | Unreadable) -> bytes:
        """An old entry as it is sent; nothing where its run cannot be read any more."""
        with suppress(LedgerCorrupt, BrokenBooks):
            whole = await self.whole(line.run)
            return next((sent for seq, sent in whole.after(line.seq - 1) if seq == line.seq), b"") if whole else b""
        return b""

    async def since(self, seq: int) -> list[Line | Unreadable]:
        """Some entries after this number, from the ledger itself."""
        return await self._in_thread(self._ledger.since, seq, BATCH)

    async def due(self, brief: Brief) -> bool:
        """Whether somebody is about to drive it: who was sent just now, or a worker that has to run its decision."""
        if time.monotonic() < brief.expected_until_s:
            return True
        if brief.summary is None or brief.summary.status != Status.DECIDED or brief.summary.kind == "serve":
            return False
        due = await self._in_thread(launch_asked, self._ledger, brief.run)
        brief.expected_until_s = time.monotonic() + ASK_AGAIN_S if due else 0.0
        return due

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

    async def _in_thread(self, read: Callable[..., Read], *arguments: object) -> Read:
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(read, *arguments))

    async def _read(self, looks: bool) -> None:
        """Who drives what is asked first: a driver that is gone has written all its entries by then.

        It is asked again where a run has begun since, which would seem to be interrupted.
        """
        driven = await self._in_thread(self._ledger.driven) if looks else None
        fresh: set[str] = set()
        try:
            if await self._take_new(fresh) - (driven or set()):
                driven = await self._in_thread(self._ledger.driven)
                await self._take_new(fresh)
            if driven is not None:
                self._looked_at = asyncio.get_running_loop().time()
                fresh |= await self._now_driven(driven)
                fresh |= await self._now_under_way()
                fresh |= await self._now_waiting()
        finally:  # what was read is told, also where the database has gone away in the middle
            self._shelf.trim()
            for run in fresh:
                self.briefs[run].wake()
            if fresh:
                self.recent.wake()

    async def _take_new(self, fresh: set[str]) -> set[str]:
        """All entries that are new; `fresh` gets the runs they are of. Those that have begun."""
        begun: set[str] = set()
        while True:
            lines = await self.since(self.last)
            if lines and any(line.run not in self.briefs for line in lines):
                self._owners |= await self._in_thread(self._ledger.owners)
            for line in lines:
                if line.run not in self.briefs or not self.briefs[line.run].last:
                    begun.add(line.run)
                await self._take(line)
                fresh.add(line.run)
            if len(lines) < BATCH:
                return begun

    async def _take(self, line: Line | Unreadable) -> None:
        """An entry that is new."""
        brief = self.briefs.get(line.run)
        if brief is None or not brief.last:
            self.briefs.pop(line.run, None)  # one that waited is as new as its first entry
            brief = self.briefs[line.run] = brief or Brief(line.run)
            self._shelf.put(line.run, Whole())
        brief.last, brief.over, brief.expected_until_s = line.seq, False, 0.0
        try:
            whole = await self._with(line)
        except (BrokenBooks, LedgerCorrupt) as error:
            brief.damaged = error.reason if isinstance(error, LedgerCorrupt) else str(error)
            if brief.summary is not None:
                brief.summary = replace(brief.summary, chosen=None, because=DAMAGED)
            self._shelf.drop(line.run)
        else:
            self._sum_up(brief, whole)
            self.recent.add(line.seq, whole.frames[whole.seqs.index(line.seq)])
        self.last = line.seq  # not before: if the database goes away meanwhile, this entry is read again

    async def _with(self, line: Line | Unreadable) -> Whole:
        """Its run, with this entry."""
        if isinstance(line, Unreadable):
            raise BrokenBooks(f"entry {line.seq} is damaged; restore the ledger from a copy")
        whole = self._shelf.get(line.run) or await self._load(line.run)
        whole.add(line)
        return whole

    def _sum_up(self, brief: Brief, whole: Whole) -> None:
        owner, team = self._owners.get(brief.run, (None, None))
        begun_at = whole.lines[0].written_at
        brief.summary = summary_of(brief.run, begun_at, whole.account, brief.driven, owner, team, whole.reason)

    async def _now_driven(self, driven: set[str]) -> set[str]:
        """Who is driven now; the runs of which that has changed, or that are over since."""
        changed = set()
        for run, brief in list(self.briefs.items()):
            if brief.summary is None or not brief.last:
                continue
            if brief.driven != (run in driven):
                brief.driven = run in driven
                brief.summary, brief.expected_until_s = replace(brief.summary, driven=brief.driven), 0.0
                self.recent.add(None, state_frame(brief))
                changed.add(run)
            if not brief.over and not brief.driven and not brief.active and not await self.due(brief):
                brief.over = True
                changed.add(run)
        return changed

    async def _now_under_way(self) -> set[str]:
        """How far the jobs are that run on real machines; one question for all, and none where there is no such run."""
        live = [run for run, brief in self.briefs.items() if brief.driven and _is_live(brief)]
        told = await self._in_thread(self._ledger.progress, live) if live else {}
        changed = set()
        for run, brief in self.briefs.items():
            progress = to_json(from_json(told[run])).encode() if run in told else NOTHING
            if brief.progress != progress:
                brief.progress = progress
                changed.add(run)
        return changed

    async def _now_waiting(self) -> set[str]:
        """What was asked for and has not begun; the runs of which something is new."""
        changed = set()
        for summary in await self._in_thread(waiting_summaries, self._ledger):
            brief = self.briefs.setdefault(summary.run, Brief(summary.run))
            if not brief.last and brief.summary != summary:
                self._owners[summary.run] = (summary.owner, summary.team)
                brief.summary, brief.over = summary, summary.status == REFUSED
                self.recent.add(None, state_frame(brief))
                changed.add(summary.run)
        return changed


def _is_live(brief: Brief) -> bool:
    return brief.summary is not None and brief.summary.provenance == Provenance.LIVE
