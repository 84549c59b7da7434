"""Polls the ledger: one reader for all requests.

It caches a summary of every run, and the entries of those in use; evicted entries are read from the ledger again.
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
from mlcd.planners.form.jobs import is_launched
from mlcd.reports.headway import from_json, to_json
from mlcd.reports.view.summary import REFUSED, summary_of
from mlcd.service.web.queued_runs import launch_requested, waiting_summaries
from mlcd.service.web.recent_events import RecentEvents
from mlcd.service.web.run_cache import NOTHING, LoadedRun, RunCache, RunState, state_frame

STATE_POLL_S = 0.6
"""Polling interval of what changes without an entry: which runs are driven, their progress, and the queue."""
LAUNCH_POLL_S = 5.0
"""Polling interval of whether a decided run will be launched."""
BATCH = 1_000
DAMAGED = "damaged: restore the ledger from a copy"
Read = TypeVar("Read")


class LedgerPoller:
    """Runs as of the last poll. It belongs to one event loop, and reads in threads."""

    def __init__(self, ledger: Ledger, most_lines: int) -> None:
        self.briefs: dict[str, RunState] = {}
        self.recent = RecentEvents()
        self.last = 0
        """The number of the newest known entry."""
        self._ledger = ledger
        self._cache = RunCache(most_lines)
        self._owners: dict[str, tuple[str | None, str | None]] = {}
        self._loading: dict[str, asyncio.Future[LoadedRun]] = {}
        self._polling = asyncio.Lock()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="feed")  # never behind the page renderers
        self._state_read_at = float("-inf")

    def close(self) -> None:
        """Wait for active reads. The ledger may be closed only after that, by its owner."""
        self._readers.shutdown(cancel_futures=True)

    async def catch_up(self) -> None:
        """Read new entries now."""
        async with self._polling:
            await self._read(with_state=asyncio.get_running_loop().time() - self._state_read_at >= STATE_POLL_S)

    async def read_all(self) -> None:
        """Read everything now: new entries, which runs are driven, their progress, and the queue."""
        async with self._polling:
            await self._read(with_state=True)

    async def whole(self, run: str) -> LoadedRun | None:
        """All entries of a known run; None while it has none."""
        brief = self.briefs[run]
        loaded = self._cache.get(run)
        while brief.last and (loaded is None or loaded.last < brief.last):
            loaded = await self._load(run)
        return loaded

    async def sent(self, line: Line | Unreadable) -> bytes:
        """An old entry as a server-sent event; empty if its run is damaged."""
        with suppress(LedgerCorrupt, BrokenBooks):
            whole = await self.whole(line.run)
            return next((sent for seq, sent in whole.after(line.seq - 1) if seq == line.seq), b"") if whole else b""
        return b""

    async def since(self, seq: int) -> list[Line | Unreadable]:
        """The next entries after this number, from the ledger."""
        return await self._in_thread(self._ledger.since, seq, BATCH)

    async def due(self, brief: RunState) -> bool:
        """Whether it is about to be driven: it was just sent, or a worker has to launch its decision."""
        if time.monotonic() < brief.expected_until_s:
            return True
        if brief.summary is None or brief.summary.status != Status.DECIDED or not is_launched(brief.summary.kind):
            return False
        due = await self._in_thread(launch_requested, self._ledger, brief.run)
        brief.expected_until_s = time.monotonic() + LAUNCH_POLL_S if due else 0.0
        return due

    async def _load(self, run: str) -> LoadedRun:
        """Read a run, once for all who wait for it."""
        if (task := self._loading.get(run)) is None:
            task = self._loading[run] = asyncio.ensure_future(self._in_thread(self._read_whole, run))
            task.add_done_callback(lambda _: self._loading.pop(run))
        loaded, cached = await asyncio.shield(task), self._cache.get(run)
        if cached is None or cached.last < loaded.last:
            self._cache.put(run, loaded)
            return loaded
        return cached

    def _read_whole(self, run: str) -> LoadedRun:
        return LoadedRun.of(self._ledger.lines(run))

    async def _in_thread(self, read: Callable[..., Read], *arguments: object) -> Read:
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(read, *arguments))

    async def _read(self, with_state: bool) -> None:
        """The driven runs are read first: the entries of a driver that is gone are all written by then.

        They are read again if a run has started since: otherwise it would seem interrupted.
        """
        driven = await self._in_thread(self._ledger.driven) if with_state else None
        fresh: set[str] = set()
        try:
            if await self._read_new(fresh) - (driven or set()):
                driven = await self._in_thread(self._ledger.driven)
                await self._read_new(fresh)
            if driven is not None:
                self._state_read_at = asyncio.get_running_loop().time()
                fresh |= await self._update_driven(driven)
                fresh |= await self._update_progress()
                fresh |= await self._update_queue()
        finally:  # also after a partial read: watchers get what was read
            self._cache.trim()
            for run in fresh:
                self.briefs[run].wake()
            if fresh:
                self.recent.wake()

    async def _read_new(self, fresh: set[str]) -> set[str]:
        """Read all new entries and add their runs to `fresh`; return the runs that have started."""
        begun: set[str] = set()
        while True:
            lines = await self.since(self.last)
            if lines and any(line.run not in self.briefs for line in lines):
                self._owners |= await self._in_thread(self._ledger.owners)
            for line in lines:
                if line.run not in self.briefs or not self.briefs[line.run].last:
                    begun.add(line.run)
                await self._process(line)
                fresh.add(line.run)
            if len(lines) < BATCH:
                return begun

    async def _process(self, line: Line | Unreadable) -> None:
        """Process a new entry."""
        brief = self.briefs.get(line.run)
        if brief is None or not brief.last:
            self.briefs.pop(line.run, None)  # a queued run moves to the end with its first entry
            brief = self.briefs[line.run] = brief or RunState(line.run)
            self._cache.put(line.run, LoadedRun())
        brief.last, brief.over, brief.expected_until_s = line.seq, False, 0.0
        try:
            whole = await self._with(line)
        except (BrokenBooks, LedgerCorrupt) as error:
            brief.damaged = error.reason if isinstance(error, LedgerCorrupt) else str(error)
            if brief.summary is not None:
                brief.summary = replace(brief.summary, chosen=None, because=DAMAGED)
            self._cache.remove(line.run)
        else:
            self._summarize(brief, whole)
            self.recent.add(line.seq, whole.frames[whole.seqs.index(line.seq)])
        self.last = line.seq  # last: if the database fails before this, the entry is read again

    async def _with(self, line: Line | Unreadable) -> LoadedRun:
        """The run of an entry, with this entry."""
        if isinstance(line, Unreadable):
            raise BrokenBooks(f"entry {line.seq} is damaged; restore the ledger from a copy")
        whole = self._cache.get(line.run) or await self._load(line.run)
        whole.add(line)
        return whole

    def _summarize(self, state: RunState, whole: LoadedRun) -> None:
        owner, team = self._owners.get(state.run, (None, None))
        begun_at = whole.lines[0].written_at
        state.summary = summary_of(state.run, begun_at, whole.account, state.driven, owner, team, whole.reason)

    async def _update_driven(self, driven: set[str]) -> set[str]:
        """Update which runs are driven; return the runs for which that has changed, or that are over."""
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

    async def _update_progress(self) -> set[str]:
        """Update the progress of jobs on real machines, with one query for all; return the changed runs."""
        live = [run for run, brief in self.briefs.items() if brief.driven and _is_live(brief)]
        reported = await self._in_thread(self._ledger.progress, live) if live else {}
        changed = set()
        for run, brief in self.briefs.items():
            progress = to_json(from_json(reported[run])).encode() if run in reported else NOTHING
            if brief.progress != progress:
                brief.progress = progress
                changed.add(run)
        return changed

    async def _update_queue(self) -> set[str]:
        """Update the queued runs; return the changed ones."""
        changed = set()
        for summary in await self._in_thread(waiting_summaries, self._ledger):
            brief = self.briefs.setdefault(summary.run, RunState(summary.run))
            if not brief.last and brief.summary != summary:
                self._owners[summary.run] = (summary.owner, summary.team)
                brief.summary, brief.over = summary, summary.status == REFUSED
                self.recent.add(None, state_frame(brief))
                changed.add(summary.run)
        return changed


def _is_live(brief: RunState) -> bool:
    return brief.summary is not None and brief.summary.provenance == Provenance.LIVE
