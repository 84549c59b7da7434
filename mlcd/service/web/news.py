"""News of runs, sent to webhooks until each has arrived, at least once and in order for each receiver.

What is news follows from an entry of the ledger and from the account before and after it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from mlcd.core.errors import LedgerCorrupt, LedgerError
from mlcd.core.ledger import Account, Decided, Ended, Ledger, Line, Settled, Status, Unreadable
from mlcd.core.ledger.account import BrokenBooks
from mlcd.core.planner import planner_of
from mlcd.core.units import format_duration, format_usd
from mlcd.service.team.hooks import Hook, Hooks
from mlcd.service.workers.submitted import asks_to_launch

BATCH = 500
ANSWER_S = 5.0
SHARE = 0.8  # of a budget or a deadline
_LOG = logging.getLogger("mlcd.service.web.news")


@dataclass(frozen=True, slots=True)
class News:
    """Something that somebody may wait for: `event` in a word, `words` in a sentence."""

    seq: int
    run: str
    event: str
    at: datetime
    words: str
    owner: str | None = None
    team: str | None = None


def news_of(line: Line, before: Account, after: Account, launches: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """What an entry says, as event and words. `launches`: whether a decision is launched without a yes."""
    entry, spent = line.entry, format_usd(after.history.spent_usd)
    if isinstance(entry, Ended):
        yield ("finished" if entry.finished else "failed"), f"{entry.because}; {spent} spent"
    elif isinstance(entry, Decided) and after.status is Status.INFEASIBLE:
        yield "infeasible", f"{entry.decision.because}; {spent} spent"
    elif isinstance(entry, Decided) and planner_of(after.job).launches and not entry.decision.done and not launches():
        yield "waiting", f"{entry.decision.configuration} is decided and waits for a yes; {spent} spent"
    elif isinstance(entry, Settled):
        goal = after.job.goal
        if _passes(before.history.spent_usd, after.history.spent_usd, goal.budget_usd):
            yield "budget", f"{spent} of {format_usd(goal.budget_usd or 0.0)} are spent"
        if _passes(before.history.elapsed_s, after.history.elapsed_s, goal.deadline_s):
            passed = format_duration(after.history.elapsed_s)
            yield "deadline", f"{passed} of {format_duration(goal.deadline_s or 0.0)} are over"


def _passes(before: float, after: float, limit: float | None) -> bool:
    return limit is not None and before < SHARE * limit <= after


class Courier:
    """Sends what is due. `now`: the clock, for signatures."""

    def __init__(self, ledger: Ledger, hooks: Hooks, now: Callable[[], datetime]) -> None:
        self._ledger, self._hooks, self._now = ledger, hooks, now

    async def run_forever(self, every_s: float) -> None:
        """Look for news every so often."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await asyncio.to_thread(self.deliver)
            except LedgerError:  # the database is away: it is looked for again
                continue
            except Exception:
                _LOG.exception("news could not be sent; it is tried again")

    def deliver(self) -> None:
        """Send to each hook what it has not had, as long as it takes it."""
        for hook in self._hooks.due():
            self._deliver_to(hook)

    def _deliver_to(self, hook: Hook) -> None:
        accounts: dict[str, Account] = {}
        lines = self._ledger.since(hook.sent, BATCH)
        for line in lines:
            mine = [news for news in self._news(line, accounts) if _is_for(news, hook)]
            for news in mine:
                if why := self._sent(hook, news):
                    _LOG.warning("hook '%s': %s", hook.name, why, extra={"about": {"hook": hook.name}})
                    self._hooks.failed(hook, why)
                    return
            if mine:
                self._hooks.arrived(hook, line.seq)
        if lines:
            self._hooks.arrived(hook, lines[-1].seq)

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
        owner, team = self._ledger.owners().get(run, (None, None)) if found else (None, None)
        return [News(line.seq, run, event, line.written_at, words, owner, team) for event, words in found]

    def _account_before(self, line: Line) -> Account:
        earlier = (each for each in self._ledger.lines(line.run) if each.seq < line.seq)
        return Account.replay((each.entry, each.elapsed_s) for each in earlier)

    def _sent(self, hook: Hook, news: News) -> str:
        """Send it; why it did not arrive, or ''."""
        body = body_of(news, hook)
        at = str(int(self._now().timestamp()))
        headers = {
            "Content-Type": "application/json",
            "X-MLCD-Event": f"{news.seq}-{news.event}",
            "X-MLCD-Timestamp": at,
            "X-MLCD-Signature": f"sha256={signature(hook.secret, at, body)}",
        }
        options: dict[str, Any] = {"timeout": ANSWER_S, "follow_redirects": False}
        try:
            with httpx.stream("POST", hook.url, content=body, headers=headers, **options) as answer:
                status, arrived = answer.status_code, answer.is_success  # what else it says may have no end
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return f"{hook.shown} cannot be reached ({type(error).__name__})"
        return "" if arrived else f"{hook.shown} answered {status}"


def body_of(news: News, hook: Hook) -> bytes:
    """What is sent: for Slack and its like a text alone."""
    whose = f" of {news.owner}" if news.owner is not None else ""
    text = f"{news.run}{whose}: {news.event}. {news.words}"
    if hook.style == "slack":
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return json.dumps({"text": escaped}).encode()
    about = {"id": f"{news.seq}-{news.event}", "run": news.run, "event": news.event, "words": news.words}
    more = {"at": news.at.astimezone(UTC).isoformat(), "owner": news.owner, "team": news.team, "text": text}
    return json.dumps({**about, **more}).encode()


def signature(secret: str, at: str, body: bytes) -> str:
    """HMAC-SHA256 of the time and the body: a receiver checks it, and refuses what is old."""
    return hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


def _is_for(news: News, hook: Hook) -> bool:
    return (hook.member is None or hook.member == news.owner) and (hook.team is None or hook.team == news.team)
