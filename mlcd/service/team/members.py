"""The members of the team, their tokens and sessions."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, insert, select, update

from mlcd.core.database import Database, schema
from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.service.team.budget import NO_LIMIT, Budget, Per
from mlcd.service.team.role import Role
from mlcd.service.team.tokens import hashed, new_secret

SESSION_LASTS = timedelta(hours=12)
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")


class _Keep(Enum):
    AS_IT_IS = 0


KEEP: Final = _Keep.AS_IT_IS
"""Leave unchanged; None means 'no team' or 'no limit'."""


@dataclass(frozen=True, slots=True)
class Member:
    """A user of the service. `budget_usd`: for all their runs together; None for no limit."""

    name: str
    role: Role
    team: str | None = None
    budget_usd: float | None = None
    budget_per: Per = Per.TOTAL

    def __str__(self) -> str:
        of_team = f" of team {self.team}" if self.team is not None else ""
        return f"{self.role}{of_team}, {self.budget}"

    @property
    def budget(self) -> Budget:
        """Their budget and its period."""
        return Budget(self.budget_usd, self.budget_per)


class Members:
    """The members on a database, their tokens and sessions, and the teams' budgets. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    def add(
        self,
        name: str,
        role: Role,
        team: str | None = None,
        budget_usd: float | None = None,
        budget_per: Per = Per.TOTAL,
    ) -> str:
        """Add a member, new or returning; return the token, which is shown only once.

        A returning member gets back their runs, and what those have spent counts.
        """
        row = _checked({"role": role, "team": team, "budget_usd": budget_usd, "budget_per": budget_per})
        check_name("member", name)
        token = new_secret()
        row |= {"token_hash": hashed(token), "created_at": _text(self._now()), "removed_at": None}
        with self._database.write() as connection:
            earlier = connection.execute(
                select(schema.members.c.removed_at).where(schema.members.c.name == name)
            ).one_or_none()
            if earlier is None:
                connection.execute(insert(schema.members).values(name=name, **row))
            elif earlier.removed_at is not None:
                connection.execute(update(schema.members).where(schema.members.c.name == name).values(**row))
            else:
                raise UserError(f"'{name}' is a member already; a new token: mlcd team token {name}")
            _ensure_team(connection, team)
        return token

    def renew(self, name: str) -> str:
        """Make a new token for a member. The old one and all sessions become invalid."""
        token = new_secret()
        with self._database.write() as connection:
            find_member(connection, name)
            _set(connection, name, token_hash=hashed(token))
            _end_sessions(connection, name)
        return token

    def remove(self, name: str) -> None:
        """Remove a member: token and sessions become invalid. Their runs stay, and count for their team."""
        with self._database.write() as connection:
            _check_not_last_admin(connection, find_member(connection, name))
            _set(connection, name, removed_at=_text(self._now()))
            _end_sessions(connection, name)

    def change(
        self,
        name: str,
        role: Role | _Keep = KEEP,
        team: str | _Keep | None = KEEP,
        budget_usd: float | _Keep | None = KEEP,
        budget_per: Per | _Keep = KEEP,
    ) -> Member:
        """Change role, team or budget. Existing runs count for the team in which they were submitted."""
        values = {"role": role, "team": team, "budget_usd": budget_usd, "budget_per": budget_per}
        row = _checked({key: value for key, value in values.items() if value is not KEEP})
        with self._database.write() as connection:
            member = find_member(connection, name)
            if "role" in row and row["role"] != Role.ADMIN:
                _check_not_last_admin(connection, member)
            if row:
                _set(connection, name, **row)
            _ensure_team(connection, row.get("team"))
            return find_member(connection, name)

    def all(self) -> list[Member]:
        """The members, by name."""
        with self._database.read() as connection:
            return _all(connection)

    def get(self, name: str) -> Member:
        """The member of that name."""
        with self._database.read() as connection:
            return find_member(connection, name)

    def of_token(self, token: str) -> Member | None:
        """The member with this token; None if there is none.

        The database looks up the hash. Its timing reveals nothing, since nobody can choose a token by its hash.
        """
        columns = schema.members.c
        query = select(columns.token_hash, *_columns()).where(columns.token_hash == hashed(token), _present())
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(row[0], hashed(token)):
            return None
        return _read(row[1:])

    def open_session(self, member: Member) -> str:
        """Open a session of some hours for a browser; return its secret."""
        secret, now = new_secret(), self._now()
        with self._database.write() as connection:
            find_member(connection, member.name)  # they may have been removed meanwhile
            connection.execute(delete(schema.sessions).where(schema.sessions.c.expires_at < _text(now)))
            connection.execute(
                insert(schema.sessions).values(
                    hash=hashed(secret),
                    member=member.name,
                    created_at=_text(now),
                    expires_at=_text(now + SESSION_LASTS),
                )
            )
        return secret

    def of_session(self, secret: str) -> Member | None:
        """The member of this session; None if there is none, or if it has expired."""
        columns = schema.sessions.c
        query = (
            select(columns.hash, columns.expires_at, *_columns())
            .join(schema.members, schema.members.c.name == columns.member)
            .where(columns.hash == hashed(secret), _present())
        )
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or not hmac.compare_digest(row[0], hashed(secret)):
            return None
        return _read(row[2:]) if self._now() < datetime.fromisoformat(row[1]) else None

    def close_session(self, secret: str) -> None:
        """Close a session; no error if there is none."""
        with self._database.write() as connection:
            connection.execute(delete(schema.sessions).where(schema.sessions.c.hash == hashed(secret)))

    def set_team_budget(self, team: str, usd: float | None, per: Per | _Keep = KEEP) -> Budget:
        """Set the budget of all runs of a team together, None for no limit. Without `per`, the period stays."""
        values = {"budget_usd": usd, "budget_per": per}
        check_name("team", team)
        row = _checked({key: value for key, value in values.items() if value is not KEEP})
        with self._database.write() as connection:
            _ensure_team(connection, team)
            connection.execute(update(schema.teams).where(schema.teams.c.name == team).values(**row))
            return budget_of(connection, schema.teams, team)

    def teams(self) -> dict[str, Budget]:
        """The teams and their budgets."""
        columns = schema.teams.c
        query = select(columns.name, columns.budget_usd, columns.budget_per).order_by(columns.name)
        with self._database.read() as connection:
            return {name: Budget(usd, _per(per)) for name, usd, per in connection.execute(query)}


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _columns() -> tuple[Any, ...]:
    columns = schema.members.c
    return columns.name, columns.role, columns.team, columns.budget_usd, columns.budget_per


def _present() -> Any:
    return schema.members.c.removed_at.is_(None)


def _read(row: Any) -> Member:
    name, role, team, budget_usd, budget_per = row
    return Member(name, Role(role), team, budget_usd, _per(budget_per))


def _per(stored: str | None) -> Per:
    return Per.TOTAL if stored is None else Per(stored)


def _all(connection: Connection) -> list[Member]:
    query = select(*_columns()).where(_present()).order_by(schema.members.c.name)
    return [_read(row) for row in connection.execute(query)]


def find_member(connection: Connection, name: str) -> Member:
    """The member of that name, within the caller's transaction."""
    query = select(*_columns()).where(schema.members.c.name == name, _present())
    row = (
        connection.execute(query).one_or_none() if _NAME.fullmatch(name) else None
    )  # some texts cannot be sent to a database
    if row is None:
        raise UnknownName("member", name, (member.name for member in _all(connection)))
    return _read(row)


def budget_of(connection: Connection, table: Table, name: str) -> Budget:
    """The budget of a member, also a removed one, or of a team, within the caller's transaction."""
    query = select(table.c.budget_usd, table.c.budget_per).where(table.c.name == name)
    row = connection.execute(query).one_or_none()
    return NO_LIMIT if row is None else Budget(row.budget_usd, _per(row.budget_per))


def _set(connection: Connection, name: str, **row: Any) -> None:
    connection.execute(update(schema.members).where(schema.members.c.name == name).values(**row))


def _end_sessions(connection: Connection, name: str) -> None:
    connection.execute(delete(schema.sessions).where(schema.sessions.c.member == name))


def _ensure_team(connection: Connection, team: str | None) -> None:
    """Create the team if it does not exist."""
    row = connection.execute(select(schema.teams.c.name).where(schema.teams.c.name == team)).first()
    if team is not None and row is None:
        connection.execute(insert(schema.teams).values(name=team, budget_usd=None))


def _check_not_last_admin(connection: Connection, member: Member) -> None:
    admins = [other for other in _all(connection) if other.role is Role.ADMIN]
    if member.role is Role.ADMIN and len(admins) == 1:
        raise WrongState(f"'{member.name}' is the only admin; make another member an admin first")


def check_name(what: str, name: str) -> None:
    """`UserError` if no member, or team, can have that name."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"{what} {name[:60]!r}: a name has up to 60 small letters, digits and . _ @ -, "
            "and begins with a letter or digit"
        )


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """The row, if all its values are valid."""
    if row.get("team") is not None:
        check_name("team", row["team"])
    usd = row.get("budget_usd")
    if usd is not None and not (math.isfinite(usd) and usd >= 0):
        raise UserError(f"budget {usd}: expected dollars, zero or more, such as 100; or no limit")
    words = {key: str(kind(row[key])) for key, kind in (("role", Role), ("budget_per", Per)) if key in row}
    return row | words
