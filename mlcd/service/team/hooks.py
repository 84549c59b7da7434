"""Webhooks of a team: where news of its runs goes, and how far each has got.

The ledger itself is the list of what is to be sent: a hook keeps the number of the last entry whose news arrived. So
nothing is lost when a service or a receiver is away; what was sent and not confirmed is sent again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from sqlalchemy import and_, delete, func, insert, select, update

from mlcd.core.database import Database
from mlcd.core.database.schema import entries, hooks
from mlcd.core.errors import UnknownName, UserError
from mlcd.service.team.members import check_name

MOST = 50
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 5.0, 600.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LONGEST_TROUBLE = 200
Style = Literal["json", "slack"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A receiver. `member`, `team`: only of their runs. `trouble`: why the last try failed; else empty."""

    name: str
    url: str
    secret: str
    style: Style
    member: str | None
    team: str | None
    sent: int
    tries: int
    next_at: datetime | None
    trouble: str

    @property
    def shown(self) -> str:
        """The address without its path and query, which are secrets with some receivers."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"


class Hooks:
    """The hooks on a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def all(self) -> list[Hook]:
        """By name."""
        with self._database.read() as connection:
            return [_hook(row) for row in connection.execute(select(hooks).order_by(hooks.c.name))]

    def due(self) -> list[Hook]:
        """Those that need not wait before they are tried again."""
        return [each for each in self.all() if each.next_at is None or each.next_at <= self._now()]

    def add(self, name: str, url: str, style: Style, member: str | None, team: str | None) -> str:
        """Add a hook for what happens from now on; return its secret, by which receivers know that news is ours."""
        check_name("hook", name)
        check_url(url)
        secret = secrets.token_urlsafe(32)
        row = {"name": name, "url": url, "secret": secret, "style": style, "member": member, "team": team}
        now = self._now().astimezone(UTC).isoformat()
        with self._database.write() as connection:
            known = connection.execute(select(hooks.c.name)).scalars().all()
            if name in known or len(known) >= MOST:
                raise UserError(f"there is a hook '{name}' already" if name in known else f"{MOST} hooks are the most")
            sent = connection.execute(select(func.coalesce(func.max(entries.c.seq), 0))).scalar_one()
            connection.execute(insert(hooks), {**row, "sent": sent, "tries": 0, "trouble": "", "created_at": now})
        return secret

    def remove(self, name: str) -> None:
        """Send nothing there any more."""
        with self._database.write() as connection:
            if not connection.execute(delete(hooks).where(hooks.c.name == name)).rowcount:
                raise UnknownName("hook", name, connection.execute(select(hooks.c.name)).scalars())

    def arrived(self, hook: Hook, seq: int) -> None:
        """Its news up to this entry has arrived."""
        self._set(hook, sent=seq, tries=0, next_at=None, trouble="")

    def failed(self, hook: Hook, why: str) -> None:
        """It is tried again, later each time."""
        wait_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(hook.tries, 10))
        next_at = (self._now() + timedelta(seconds=wait_s)).astimezone(UTC).isoformat()
        self._set(hook, tries=hook.tries + 1, next_at=next_at, trouble=why[:LONGEST_TROUBLE])

    def _set(self, hook: Hook, **values: Any) -> None:
        this = and_(hooks.c.name == hook.name, hooks.c.secret == hook.secret)  # not: another one of that name by now
        with self._database.write() as connection:
            connection.execute(update(hooks).where(this).values(**values))


def check_url(url: str) -> None:
    """`UserError` unless it is https, or on this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname or parts.username or not url.isprintable():
        raise UserError("url: write it as https://hooks.example.org/path, without a user")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise UserError("url: https, or http on this machine: news would be sent in the clear")


def _hook(row: Any) -> Hook:
    next_at = datetime.fromisoformat(row.next_at) if row.next_at is not None else None
    words = (row.name, row.url, row.secret, row.style, row.member, row.team)
    return Hook(*words, row.sent, row.tries, next_at, row.trouble)
