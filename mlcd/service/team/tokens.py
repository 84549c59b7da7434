"""Named tokens of members, for programs: each has a scope, and most expire. Only hashes are stored.

Each member also has one unnamed token with their full rights, which an admin gave them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, and_, func, insert, or_, select, update

from mlcd.core.database import Database
from mlcd.core.database.schema import tokens
from mlcd.core.errors import UnknownName, UserError
from mlcd.service.team.members import Scope, check_name, find_member, hashed, new_secret

MOST = 20
"""The most named tokens of a member at a time."""
LONGEST_DAYS = 3_650


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token without its secret. `used_at`: its last use, to the minute."""

    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    expired: bool


class NamedTokens:
    """The named tokens on a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def all(self, member: str) -> list[NamedToken]:
        """A member's tokens that were not revoked, by name."""
        query = select(tokens).where(_not_revoked(member)).order_by(tokens.c.name)
        with self._database.read() as connection:
            return [self._named_token(row) for row in connection.execute(query)]

    def add(self, member: str, name: str, scope: Scope, days: int | None) -> tuple[NamedToken, str]:
        """Make a token and return its secret, which is not stored. `days`: its lifetime; None: until it is revoked."""
        check_name("token", name)
        if scope is Scope.FULL:
            raise UserError("scope 'full': a named token can only have the scope read or run")
        if days is not None and not 1 <= days <= LONGEST_DAYS:
            raise UserError(f"{days} days: expected 1 to {LONGEST_DAYS}")
        with self._database.write() as connection:
            find_member(connection, member)
            if connection.execute(select(tokens.c.hash).where(_not_revoked(member, name))).first() is not None:
                raise UserError(f"{member} has a token '{name}' already: rotate it, or revoke it first")
            count = connection.execute(
                select(func.count()).select_from(tokens).where(_not_revoked(member))
            ).scalar_one()
            if count >= MOST:
                raise UserError(f"{member} has {count} tokens, and {MOST} are the most; revoke one first")
            return self._insert(connection, member, name, scope, timedelta(days=days) if days is not None else None)

    def rotate(self, member: str, name: str) -> tuple[NamedToken, str]:
        """Replace a token's secret and restart its lifetime; the old secret is void at once."""
        with self._database.write() as connection:
            before = self._named_token(self._find(connection, member, name))
            self._revoke(connection, member, name)
            lasts = before.expires_at - before.created_at if before.expires_at is not None else None
            return self._insert(connection, member, name, before.scope, lasts)

    def revoke(self, member: str, name: str) -> None:
        """End a token at once."""
        with self._database.write() as connection:
            self._find(connection, member, name)
            self._revoke(connection, member, name)

    def _insert(
        self, connection: Connection, member: str, name: str, scope: Scope, lasts: timedelta | None
    ) -> tuple[NamedToken, str]:
        secret, now = new_secret(), self._now().astimezone(UTC)
        expires_at = now + lasts if lasts is not None else None
        row = {"hash": hashed(secret), "member": member, "name": name, "scope": str(scope)}
        times = {"created_at": now.isoformat(), "expires_at": expires_at.isoformat() if expires_at else None}
        connection.execute(insert(tokens).values(**row, **times))
        return NamedToken(name, scope, now, expires_at, None, False), secret

    def _find(self, connection: Connection, member: str, name: str) -> Any:
        rows = connection.execute(select(tokens).where(_not_revoked(member))).all()
        found = next((row for row in rows if row.name == name), None)
        if found is None:
            raise UnknownName("token", name, [row.name for row in rows])
        return found

    def _revoke(self, connection: Connection, member: str, name: str) -> None:
        now = self._now().astimezone(UTC).isoformat()
        connection.execute(update(tokens).where(_not_revoked(member, name)).values(revoked_at=now))

    def _named_token(self, row: Any) -> NamedToken:
        created_at, expires_at, used_at = map(_time, (row.created_at, row.expires_at, row.used_at))
        assert created_at is not None
        expired = expires_at is not None and self._now() >= expires_at
        return NamedToken(row.name, Scope(row.scope), created_at, expires_at, used_at, expired)


def limit_named_tokens(connection: Connection, name: str, until: str) -> None:
    """Let all named tokens of a member expire at this time, if they do not expire earlier."""
    later = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > until)
    connection.execute(update(tokens).where(tokens.c.member == name, later).values(expires_at=until))


def _not_revoked(member: str, name: str | None = None) -> Any:
    """Of a member, not revoked; `name`: only this one."""
    live = and_(tokens.c.member == member, tokens.c.revoked_at.is_(None))
    return live if name is None else and_(live, tokens.c.name == name)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None
