"""The feed: one reader of the ledger for everybody who looks, and for everybody who watches.

One task asks the ledger every 150 ms what is new, whatever the number of watchers; they read what it has found. Each
entry is put into words and bytes once.

A database that is away is waited for; meanwhile what is known is still told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from mlcd.core.errors import LedgerError, MlcdError, UnknownName
from mlcd.core.ledger import Ledger
from mlcd.reports.view import Summary
from mlcd.service.web.failures import shown
from mlcd.service.web.known import MOST_LINES, Brief
from mlcd.service.web.polled import Polled
from mlcd.service.web.streams import PING_S, of_all, of_run

POLL_S = 0.15
LONGEST_PAUSE_S = 5.0
"""Between two attempts while the database is away."""
EXPECTED_S = 60.0
"""Within which a worker that was sent drives its run."""
_LOG = logging.getLogger("mlcd.service.web.feed")


class Feed(Polled):
    """What happens in a ledger. Everything but `__init__` and `expect` belongs to the app's event loop."""

    def __init__(self, ledger: Ledger, *, poll_s: float = POLL_S, most_lines: int = MOST_LINES) -> None:
        super().__init__(ledger, most_lines)
        self._poll_s = poll_s
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

    @property
    def lines_kept(self) -> int:
        """How many entries are in memory."""
        return len(self._shelf)

    def summaries(self) -> list[Summary]:
        """Every run, the newest first; those that wait and were refused are among them."""
        return [brief.summary for brief in reversed(self.briefs.values()) if brief.summary is not None]

    async def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest. One that was asked for a moment ago is looked for."""
        if run not in self.briefs:
            await self.look()
        if run == "last" and self.briefs:
            return next(reversed(self.briefs))
        if run not in self.briefs:
            raise UnknownName("run", run, self.briefs)
        return run

    def brief(self, run: str) -> Brief:
        """What is kept of a run that was found."""
        return self.briefs[run]

    def watch(self, run: str, after: int = 0, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The entries of a run after this number, and how far it is, until it is over and nobody drives it."""
        return of_run(self, run, after, ping_s)

    def watch_all(self, after: int | None = None, ping_s: float = PING_S) -> AsyncIterator[bytes]:
        """The entries of all runs after this number, or from now on; without end."""
        return of_all(self, after, ping_s)

    async def reconsider(self, run: str) -> None:
        """Before a run is watched: one that was over may have been asked to go on since."""
        brief = self.briefs[run]
        if brief.over and await self.due(brief):
            brief.over = False

    def expect(self, run: str) -> None:
        """Somebody is about to drive this run, who was sent a moment ago. Any thread may say so."""
        if (brief := self.briefs.get(run)) is not None:
            brief.expected_until_s, brief.over = time.monotonic() + EXPECTED_S, False

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
                self.away = shown(error)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
            else:
                if self.away:
                    _LOG.warning("the ledger can be read again")
                self.away, pause_s = "", self._poll_s
