"""Computes notifications from the ledger, once for all receivers that are at the same entry."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from mlcd.core.errors import LedgerCorrupt
from mlcd.core.ledger import Account, Ledger, Line, Settled, Unreadable
from mlcd.core.ledger.account import BrokenBooks
from mlcd.service.notifications.budget_events import budget_notifications
from mlcd.service.notifications.events import Notification, events_of_entry, run_url, spent_words
from mlcd.service.workers.submissions import asks_to_launch

BATCH = 500
MOST_ACCOUNTS = 200


@dataclass(frozen=True, slots=True)
class Page:
    """The notifications of the entries after number `start` up to `end`; `end == start`: there are no more entries."""

    start: int
    end: int
    notifications: tuple[Notification, ...]


class NotificationReader:
    """Thread-safe. `public_url`: how members reach the service."""

    def __init__(self, ledger: Ledger, public_url: str | None = None) -> None:
        self._ledger, self._public_url = ledger, public_url
        self._lock = threading.Lock()
        self._page = Page(-1, -1, ())
        self._accounts: dict[str, Account] = {}  # of recently read runs, as of the end of the page

    def newest(self) -> int:
        """The number of the newest entry."""
        return self._ledger.last_seq()

    def after(self, seq: int) -> Page:
        """The next page after this entry."""
        with self._lock:
            if self._page.start != seq or self._page.end == seq:
                self._page = self._read(seq)
            return self._page

    def _read(self, seq: int) -> Page:
        accounts = self._accounts if self._page.end == seq and len(self._accounts) <= MOST_ACCOUNTS else {}
        self._accounts = {}  # so that a failure half-way leaves no account of an unknown entry
        lines = self._ledger.since(seq, BATCH)
        notifications = tuple(each for line in lines for each in self._notifications(line, accounts))
        self._accounts = accounts
        return Page(seq, lines[-1].seq if lines else seq, notifications)

    def _notifications(self, line: Line | Unreadable, accounts: dict[str, Account]) -> list[Notification]:
        """The notifications of an entry. Updates `accounts`, the accounts of the runs before it."""
        if isinstance(line, Unreadable):
            return []
        run = line.run
        try:
            before = accounts.get(run) or self._account_before(line)
            after = accounts[run] = before.after(line.entry, line.elapsed_s)
        except (BrokenBooks, LedgerCorrupt):  # a damaged run causes no notifications
            return []
        events = list(events_of_entry(line, before, after, lambda: asks_to_launch(run, self._ledger)))
        if not events and not isinstance(line.entry, Settled):
            return []
        owner, team = self._ledger.owners().get(run, (None, None))
        link, money = run_url(run, self._public_url), spent_words(after)
        own = [
            Notification(line.seq, run, event, line.written_at, words, money, owner, team, link)
            for event, words in events
        ]
        return own + list(budget_notifications(self._ledger.database, line, owner, team, link))

    def _account_before(self, line: Line) -> Account:
        earlier = (each for each in self._ledger.lines(line.run) if each.seq < line.seq)
        return Account.replay((each.entry, each.elapsed_s) for each in earlier)
