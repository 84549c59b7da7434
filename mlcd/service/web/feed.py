"""The feed: one reader of the ledger for all requests and all event streams.

One task polls the ledger every 150 ms, whatever the number of watchers, who read its results. Each entry is formatted
once. While the database is unreachable, it retries with a backoff, and requests get what is known so far.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from mlcd.core.errors import LedgerError, MlcdError, UnknownName
from mlcd.core.ledger import Ledger
from mlcd.reports.view.summary import Summary
from mlcd.service.web.failures import public_message
from mlcd.service.web.ledger_poller import LedgerPoller
from mlcd.service.web.run_cache import MOST_LINES, RunState
from mlcd.service.web.streams import PING_S, of_all, of_run

POLL_S = 0.15
LONGEST_BACKOFF_S = 5.0
"""Longest backoff while the database is unreachable."""
EXPECTED_S = 60.0
"""How long a run counts as about to be driven after it was sent to the workers."""
_LOG = logging.getLogger("mlcd.service.web.feed")


class Feed(LedgerPoller):
    """The events of a ledger. Only `__init__` and `expect` may be called outside of the app's event loop."""

    def __init__(self, ledger: Ledger, *, poll_s: float = POLL_S, most_lines: int = MOST_LINES) -> None:
        super().__init__(ledger, most_lines)
        self._poll_s = poll_s
        self.away = ""
        """Why the ledger cannot be read now; '' if it can."""

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

    @property
    def lines_kept(self) -> int:
        """How many entries are in memory."""
        return len(self._cache)

    def summaries(self) -> list[Summary]:
        """All runs, the newest first, including queued and refused ones."""
        return [brief.summary for brief in reversed(self.briefs.values()) if brief.summary is not None]

    async def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest. An unknown name is looked up in the ledger first."""
        if run not in self.briefs:
            await self.read_all()
        if run == "last" and self.briefs:
            return next(reversed(self.briefs))
        if run not in self.briefs:
            raise UnknownName("run", run, self.briefs)
        return run

    def brief(self, run: str) -> RunState:
        """What is cached of a run that was found."""
        return self.briefs[run]

    def watch(self, run: str, after: int = 0, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The event stream of a run: entries after this number and progress, until it is over and not driven."""
        return of_run(self, run, after, ping_s)

    def watch_all(self, after: int | None = None, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The event stream of all runs: entries after this number, or from now on; endless."""
        return of_all(self, after, ping_s)

    async def reconsider(self, run: str) -> None:
        """Before a run is watched: one that was over may have been resumed since."""
        brief = self.briefs[run]
        if brief.over and await self.due(brief):
            brief.over = False

    def expect(self, run: str) -> None:
        """This run was just sent to the workers and will be driven soon. Thread-safe."""
        if (brief := self.briefs.get(run)) is not None:
            brief.expected_until_s, brief.over = time.monotonic() + EXPECTED_S, False

    async def _poll_forever(self) -> None:
        backoff_s = self._poll_s
        while True:
            await asyncio.sleep(backoff_s)
            try:
                await self.catch_up()
            except Exception as error:
                if not self.away:
                    _LOG.warning("the ledger cannot be read; retrying: %s", error)
                    if not isinstance(error, LedgerError):
                        _LOG.error("unexpected error", exc_info=error)
                self.away = public_message(error)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                if self.away:
                    _LOG.warning("the ledger can be read again")
                self.away, backoff_s = "", self._poll_s
