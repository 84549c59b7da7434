"""Reads the ledger for news, once for all receivers that are equally far."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from mlcd.core.errors import LedgerCorrupt
from mlcd.core.ledger import Account, Ledger, Line, Settled, Unreadable
from mlcd.core.ledger.account import BrokenBooks
from mlcd.service.news.budgets import budget_news
from mlcd.service.news.events import News, money_of, news_of, page_of
from mlcd.service.workers.submitted import asks_to_launch

BATCH = 500
MOST_ACCOUNTS = 200


@dataclass(frozen=True, slots=True)
class Page:
    """The news of some entries after `start`, up to `end`; `end == start`: there are no more entries."""

    start: int
    end: int
    news: tuple[News, ...]


class NewsReader:
    """Any number of threads may ask it. `public_url`: how members reach the service."""

    def __init__(self, ledger: Ledger, public_url: str | None = None) -> None:
        self._ledger, self._public_url = ledger, public_url
        self._lock = threading.Lock()
        self._page = Page(-1, -1, ())
        self._accounts: dict[str, Account] = {}  # of the runs that were read lately, at the end of the page

    def newest(self) -> int:
        """The number of the newest entry."""
        return self._ledger.last_seq()

    def after(self, seq: int) -> Page:
        """What comes next."""
        with self._lock:
            if self._page.start != seq or self._page.end == seq:
                self._page = self._read(seq)
            return self._page

    def _read(self, seq: int) -> Page:
        accounts = self._accounts if self._page.end == seq and len(self._accounts) <= MOST_ACCOUNTS else {}
        self._accounts = {}  # if it fails half-way, they are of no entry that is known
        lines = self._ledger.since(seq, BATCH)
        news = tuple(news for line in lines for news in self._news(line, accounts))
        self._accounts = accounts
        return Page(seq, lines[-1].seq if lines else seq, news)

    def _news(self, line: Line | Unreadable, accounts: dict[str, Account]) -> list[News]:
        """What an entry says; `accounts`: of the runs so far, which it changes."""
        if isinstance(line, Unreadable):
            return []
        run = line.run
        try:
            before = accounts.get(run) or self._account_before(line)
            after = accounts[run] = before.after(line.entry, line.elapsed_s)
        except (BrokenBooks, LedgerCorrupt):  # a damaged run has no news
            return []
        found = list(news_of(line, before, after, lambda: asks_to_launch(run, self._ledger)))
        if not found and not isinstance(line.entry, Settled):
            return []
        owner, team = self._ledger.owners().get(run, (None, None))
        link, money = page_of(run, self._public_url), money_of(after)
        own = [News(line.seq, run, event, line.written_at, words, money, owner, team, link) for event, words in found]
        return own + list(budget_news(self._ledger.database, line, owner, team, link))

    def _account_before(self, line: Line) -> Account:
        earlier = (each for each in self._ledger.lines(line.run) if each.seq < line.seq)
        return Account.replay((each.entry, each.elapsed_s) for each in earlier)
