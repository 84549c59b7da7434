"""The feed: one reader of the ledger for all requests and all event streams.

One task polls the ledger every 150 ms, whatever the number of watchers, who read its results. It caches a summary of
every run, and the entries of those in use; evicted entries are read from the ledger again. Each entry is formatted
once. While the database is unreachable, it retries with a backoff, and requests get what is known so far.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from mlcd.core.backend import Provenance
from mlcd.core.errors import LedgerCorrupt, LedgerError, MlcdError, UnknownName
from mlcd.core.ledger import UNLABELLED, Account, Labels, Ledger, Line, Status, Unreadable
from mlcd.core.ledger.account import BrokenBooks
from mlcd.planners.form.jobs import is_launched
from mlcd.reports.launch_progress import from_json, to_json
from mlcd.reports.view.summary import REFUSED, Summary, labelled, summary_of, waiting_summary
from mlcd.service.web.errors import public_message
from mlcd.service.web.run_cache import MOST_LINES, NOTHING, LoadedRun, RecentEvents, RunCache, RunState, state_frame
from mlcd.service.workers import submissions

POLL_S = 0.15
STATE_POLL_S = 0.6  # of what changes without an entry: which runs are driven, their progress, labels, and the queue
LAUNCH_POLL_S = 5.0  # polling interval of whether a decided run will be launched
EXPECTED_S = 60.0  # how long a run counts as about to be driven after it was sent to the workers
LONGEST_BACKOFF_S = 5.0  # longest backoff while the database is unreachable
BATCH = 1_000
DAMAGED = "damaged: restore the ledger from a copy"
Read = TypeVar("Read")
_LOG = logging.getLogger("mlcd.service.web.feed")


class Feed:
    """Runs as of the last poll. It belongs to one event loop: only `__init__` and `expect` may be called elsewhere."""

    def __init__(self, ledger: Ledger, *, poll_s: float = POLL_S, most_lines: int = MOST_LINES) -> None:
        self.run_states: dict[str, RunState] = {}
        self.recent = RecentEvents()
        self.last = 0  # the number of the newest known entry
        self.read_error = ""  # why the ledger cannot be read now; '' if it can
        self.listeners: list[Callable[[Line, Account], None]] = []  # called once for each entry, in order
        self._ledger, self._poll_s = ledger, poll_s
        self._cache = RunCache(most_lines)
        self._owners: dict[str, tuple[str | None, str | None]] = {}
        self._labels: dict[str, tuple[int, Labels]] = {}
        self._relabelled = 0  # the newest known revision of labels
        self._loading: dict[str, asyncio.Future[LoadedRun]] = {}
        self._polling = asyncio.Lock()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="feed")  # never behind the page renderers
        self._state_read_at = float("-inf")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Poll while the block runs. The existing entries are read first, if the ledger can be read."""
        with suppress(MlcdError):
            await self.catch_up()
        task = asyncio.create_task(self._poll_forever())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Wait for active reads. The ledger may be closed only after that, by its owner."""
        self._readers.shutdown(cancel_futures=True)

    async def catch_up(self, with_state: bool = False) -> None:
        """Read new entries now; `with_state`: in any case also which runs are driven, their progress, and the queue."""
        async with self._polling:
            due = asyncio.get_running_loop().time() - self._state_read_at >= STATE_POLL_S
            await self._read(with_state or due)

    def summaries(self) -> list[Summary]:
        """All runs, the newest first, including queued and refused ones."""
        return [brief.summary for brief in reversed(self.run_states.values()) if brief.summary is not None]

    def revision(self, run: str) -> int:
        """The revision number of the run's labels; 0 if it has none."""
        return self._labels.get(run, (0, UNLABELLED))[0]

    async def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest. An unknown name is looked up in the ledger first."""
        if run not in self.run_states:
            await self.catch_up(with_state=True)
        if run == "last" and self.run_states:
            return next(reversed(self.run_states))
        if run not in self.run_states:
            raise UnknownName("run", run, self.run_states)
        return run

    async def whole(self, run: str) -> LoadedRun | None:
        """All entries of a known run; None while it has none."""
        brief = self.run_states[run]
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

    async def reconsider(self, run: str) -> None:
        """Update whether a run is over before it is watched: it may have been resumed since."""
        brief = self.run_states[run]
        if brief.over and await self._due(brief):
            brief.over = False

    def expect(self, run: str) -> None:
        """This run was just sent to the workers and will be driven soon. Thread-safe."""
        if (brief := self.run_states.get(run)) is not None:
            brief.expected_until_s, brief.over = time.monotonic() + EXPECTED_S, False

    async def _poll_forever(self) -> None:
        backoff_s = self._poll_s
        while True:
            await asyncio.sleep(backoff_s)
            try:
                await self.catch_up()
            except Exception as error:
                if not self.read_error:
                    _LOG.warning("the ledger cannot be read; retrying: %s", error)
                    if not isinstance(error, LedgerError):
                        _LOG.error("unexpected error", exc_info=error)
                self.read_error = public_message(error)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                if self.read_error:
                    _LOG.warning("the ledger can be read again")
                self.read_error, backoff_s = "", self._poll_s

    async def _due(self, brief: RunState) -> bool:
        """Whether it is about to be driven: it was just sent, or a worker has to launch its decision."""
        if time.monotonic() < brief.expected_until_s:
            return True
        if brief.summary is None or brief.summary.status != Status.DECIDED or not is_launched(brief.summary.kind):
            return False
        due = await self._in_thread(submissions.asks_to_launch, brief.run, self._ledger)
        brief.expected_until_s = time.monotonic() + LAUNCH_POLL_S if due else 0.0
        return due

    async def _load(self, run: str) -> LoadedRun:
        """Read a run, once for all who wait for it."""
        if (task := self._loading.get(run)) is None:
            task = asyncio.ensure_future(self._in_thread(lambda: LoadedRun.of(self._ledger.lines(run))))
            self._loading[run] = task
            task.add_done_callback(lambda _: self._loading.pop(run))
        loaded, cached = await asyncio.shield(task), self._cache.get(run)
        if cached is None or cached.last < loaded.last:
            self._cache.put(run, loaded)
            return loaded
        return cached

    async def _in_thread(self, read: Callable[..., Read], *arguments: object) -> Read:
        return await asyncio.get_running_loop().run_in_executor(self._readers, read, *arguments)

    async def _read(self, with_state: bool) -> None:
        """Read new entries, and the state of the runs: in any case if a run that nobody drove has new entries.

        Otherwise that run would seem interrupted.
        """
        fresh: set[str] = set()
        queued: set[str] = set()
        driven: set[str] | None = None
        try:
            if with_state:
                driven = await self._read_state(queued)
            begun = await self._read_new(fresh)
            if begun if driven is None else fresh - driven:
                driven = await self._read_state(queued)
                await self._read_new(fresh)
            if driven is not None:
                self._state_read_at = asyncio.get_running_loop().time()
                fresh |= await self._update_driven(driven)
                fresh |= await self._update_progress()
                fresh |= await self._update_labels()
        finally:  # also after a partial read: watchers get what was read
            self._cache.trim()
            for run in fresh | queued:
                self.run_states[run].wake()
            if fresh or queued:
                self.recent.wake()

    async def _read_state(self, queued: set[str]) -> set[str]:
        """The driven runs; changes of the queue are added to `queued`. Call it before reading entries.

        All entries of a driver that is gone are written by then, and a run that leaves the queue meanwhile has one.
        """
        driven = await self._in_thread(self._ledger.driven)
        queued |= await self._update_queue()
        return driven

    async def _read_new(self, fresh: set[str]) -> set[str]:
        """Read all new entries and add their runs to `fresh`; return the runs that have started."""
        begun: set[str] = set()
        while True:
            lines = await self.since(self.last)
            if lines and any(line.run not in self.run_states for line in lines):
                self._owners |= await self._in_thread(self._ledger.owners)
            for line in lines:
                if line.run not in self.run_states or not self.run_states[line.run].last:
                    begun.add(line.run)
                await self._process(line)
                fresh.add(line.run)
            if len(lines) < BATCH:
                return begun

    async def _process(self, line: Line | Unreadable) -> None:
        brief = self.run_states.get(line.run)
        if brief is None or not brief.last:
            self.run_states.pop(line.run, None)  # a queued run moves to the end with its first entry
            brief = self.run_states[line.run] = brief or RunState(line.run)
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
            owner, team = self._owners.get(line.run, (None, None))
            begun_at = whole.lines[0].written_at
            summary = summary_of(line.run, begun_at, whole.account, brief.driven, owner, team, whole.reason)
            brief.summary = self._with_labels(summary)
            self.recent.add(*whole.after(line.seq - 1)[0])
            if isinstance(line, Line):
                for each in self.listeners:
                    each(line, whole.account)
        self.last = line.seq  # last: if the database fails before this, the entry is read again

    async def _with(self, line: Line | Unreadable) -> LoadedRun:
        """The run of an entry, with this entry."""
        if isinstance(line, Unreadable):
            raise BrokenBooks(f"entry {line.seq} is damaged; restore the ledger from a copy")
        whole = self._cache.get(line.run) or await self._load(line.run)
        whole.add(line)
        return whole

    async def _update_driven(self, driven: set[str]) -> set[str]:
        """Update which runs are driven; return the runs for which that has changed, or that are over."""
        changed = set()
        for run, brief in list(self.run_states.items()):
            if brief.summary is None or not brief.last:
                continue
            if brief.driven != (run in driven):
                brief.driven = run in driven
                brief.summary, brief.expected_until_s = replace(brief.summary, driven=brief.driven), 0.0
                self.recent.add(None, state_frame(brief))
                changed.add(run)
            if not brief.over and not brief.driven and not brief.active and not await self._due(brief):
                brief.over = True
                changed.add(run)
        return changed

    async def _update_progress(self) -> set[str]:
        """Update the progress of jobs on real machines, with one query for all; return the changed runs."""
        live = [each.run for each in self.summaries() if each.driven and each.provenance == Provenance.LIVE]
        reported = await self._in_thread(self._ledger.progress, live) if live else {}
        changed = set()
        for run, brief in self.run_states.items():
            progress = to_json(from_json(reported[run])).encode() if run in reported else NOTHING
            if brief.progress != progress:
                brief.progress = progress
                changed.add(run)
        return changed

    async def _update_labels(self) -> set[str]:
        """Update the labels of the runs; return the changed runs."""
        changed = set()
        for revision, run, labels in await self._in_thread(self._ledger.labels_since, self._relabelled):
            self._labels[run], self._relabelled = (revision, labels), revision
            brief = self.run_states.get(run)
            if brief is not None and brief.summary is not None:
                brief.summary = labelled(brief.summary, labels)
                self.recent.add(None, state_frame(brief))
                changed.add(run)
        return changed

    def _with_labels(self, summary: Summary) -> Summary:
        return labelled(summary, self._labels.get(summary.run, (0, UNLABELLED))[1])

    async def _update_queue(self) -> set[str]:
        """Update the queued runs; return the changed ones."""
        changed = set()
        for summary in map(self._with_labels, await self._in_thread(_waiting_summaries, self._ledger)):
            brief = self.run_states.setdefault(summary.run, RunState(summary.run))
            if not brief.last and brief.summary != summary:
                self._owners[summary.run] = (summary.owner, summary.team)
                brief.summary, brief.over = summary, summary.status == REFUSED
                self.recent.add(None, state_frame(brief))
                changed.add(summary.run)
        return changed


def _waiting_summaries(ledger: Ledger) -> list[Summary]:
    """All runs that were submitted and wait, or were refused, in the order of submission."""
    summaries = []
    for each in ledger.waiting():
        job, at = submissions.from_json(each.request)[0], each.created_at.isoformat()
        summaries.append(waiting_summary(each.run, at, job, each.refused, each.owner, each.team))
    return summaries
