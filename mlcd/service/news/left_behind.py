"""Finds runs whose driver is gone and whose machines may still be billed, and says so in the ledger.

A worker takes over the run of a dead one within seconds. Where none can (the process has died too often, its machine is
lost, no worker runs, or it was a command line's), nobody would notice until the bill.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import LedgerCorrupt, LedgerError, WrongState
from mlcd.core.ledger import Ledger, Stopped
from mlcd.service.team.budget import runs_with_open_launches

GRACE = timedelta(minutes=3)
"""How long nobody may drive such a run: another worker, or a driver that lost its connection, needs much less."""
NOBODY = "nobody drives it any more: its process died, or its machine is gone"
_LOG = logging.getLogger("mlcd.service.news")


class LeftBehind:
    """Looks now and then. `now`: the clock."""

    def __init__(self, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self._ledger, self._now = ledger, now
        self._since: dict[str, datetime] = {}  # since when nobody was seen to drive a run
        self._told: set[str] = set()

    def look(self) -> None:
        """Stop, in the ledger, each run that nobody has driven for so long."""
        try:
            alone = runs_with_open_launches(self._ledger.database) - self._ledger.driven()
        except LedgerError:  # drivers may have lost their connections, too: give them time again
            self._since = {}
            raise
        now = self._now()
        self._since = {run: self._since.get(run, now) for run in alone}
        self._told &= alone
        for run, since in self._since.items():
            if now - since >= GRACE and run not in self._told:
                self._stop(run)
                self._told.add(run)

    def _stop(self, run: str) -> None:
        try:
            with self._ledger.hold(run):
                account = self._ledger.account(run)
                if account.stopped or not account.open or account.provenance is not Provenance.LIVE:
                    return
                self._ledger.book(run, VirtualClock(account.history.elapsed_s)).write(Stopped(NOBODY))
        except (WrongState, LedgerCorrupt):  # somebody drives it again; or it cannot be read, which its page tells
            return
        _LOG.warning("run '%s': %s", run, NOBODY, extra={"about": {"run": run}})
