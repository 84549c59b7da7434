"""Finds runs whose driver is gone while their machines may still be billed, and records that in the ledger.

Normally another worker takes over within seconds. If none can (the process has died too often, its machine is lost, no
worker is running, or a command line drove the run), nobody would notice until the bill comes.
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
"""How long a run may have no driver: a takeover, or a driver that lost its connection, needs much less."""
NOBODY = "no process drives it any more: its process died, or its machine is gone"
_LOG = logging.getLogger("mlcd.service.notifications")


class AbandonedRunDetector:
    """Call `look` regularly. `now`: the clock."""

    def __init__(self, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self._ledger, self._now = ledger, now
        self._since: dict[str, datetime] = {}  # for each run without a driver: since when
        self._reported: set[str] = set()

    def look(self) -> None:
        """Mark each run as stopped in the ledger that has had no driver for longer than `GRACE`."""
        try:
            abandoned = runs_with_open_launches(self._ledger.database) - self._ledger.driven()
        except LedgerError:  # drivers may have lost their connections, too: restart their grace period
            self._since = {}
            raise
        now = self._now()
        self._since = {run: self._since.get(run, now) for run in abandoned}
        self._reported &= abandoned
        for run, since in self._since.items():
            if now - since >= GRACE and run not in self._reported:
                self._stop(run)
                self._reported.add(run)

    def _stop(self, run: str) -> None:
        try:
            with self._ledger.hold(run):
                account = self._ledger.account(run)
                if account.stopped or not account.open or account.provenance is not Provenance.LIVE:
                    return
                self._ledger.book(run, VirtualClock(account.history.elapsed_s)).write(Stopped(NOBODY))
        except (WrongState, LedgerCorrupt):  # it has a driver again; or it cannot be read, which its page shows
            return
        _LOG.warning("run '%s': %s", run, NOBODY, extra={"about": {"run": run}})
