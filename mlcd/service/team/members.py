"""The members of the team, their roles, tokens and sessions.

Only hashes of tokens and sessions are stored. A plain SHA-256 is enough: slow, salted hashes protect passwords, which
can be guessed, but these secrets are 256 random bits from the operating system.
"""

import hashlib
import math
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, delete, insert, select, update

from mlcd.core.database import Database
from mlcd.core.database.schema import identities, members, receivers, sessions, teams, tokens
from mlcd.core.errors import LedgerError, UnknownName, UserError, WrongState
from mlcd.service.team.budget import NO_LIMIT, Budget, Per

SESSION_LASTS = timedelta(hours=12)
NOTED_EVERY = timedelta(minutes=1)  # how often the last use of a token is written: not at each request
PREFIX = "mlcd_"  # makes a token recognizable, to people and to tools that search for leaked ones
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")
_SECRET = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{16,}}")
_COLUMNS = (members.c.name, members.c.role, members.c.team, members.c.budget_usd, members.c.budget_per)
_PRESENT = members.c.removed_at.is_(None)
_NAMED = (
    select(tokens.c.name, tokens.c.scope, tokens.c.expires_at, tokens.c.used_at, *_COLUMNS)
    .join(members, members.c.name == tokens.c.member)
    .where(tokens.c.revoked_at.is_(None))
)


class Role(StrEnum):
    """Viewers see all runs, runners submit and stop their own, admins stop any run and manage the team."""

    VIEWER = "viewer"
    RUNNER = "runner"
    ADMIN = "admin"

    def may(self, other: Self) -> bool:
        """Whether this role includes the other one."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class Scope(StrEnum):
    """What a token allows within its member's role. READ and RUN are for named tokens, which cannot manage tokens."""

    READ = "read"
    RUN = "run"
    FULL = "full"

    @property
    def most(self) -> Role:
        """The highest role that a request with such a token can have."""
        return {Scope.READ: Role.VIEWER, Scope.RUN: Role.RUNNER}.get(self, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Member:
    """A user of the service. `budget_usd`: for all their runs together; None for no limit.

    `scope`, `token`: those of the named token of this request; without one: FULL and ''.
    """

    name: str
    role: Role
    team: str | None = None
    budget_usd: float | None = None
    budget_per: Per = Per.TOTAL
    scope: Scope = Scope.FULL
    token: str = ""

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
        self.database, self.now = database, now

    def add(
        self, name: str, role: Role, team: str | None = None, usd: float | None = None, per: Per = Per.TOTAL
    ) -> str:
        """Add a new member, or one who was removed, with their earlier runs; return the token, shown only once."""
        row = _checked({"role": role, "team": team, "budget_usd": usd, "budget_per": per})
        check_name("member", name)
        token = new_secret()
        row |= {"token_hash": hashed(token), "created_at": _text(self.now()), "removed_at": None}
        with self.database.write() as connection:
            earlier = connection.execute(select(members.c.removed_at).where(members.c.name == name)).one_or_none()
            if earlier is None:
                connection.execute(insert(members).values(name=name, **row))
            elif earlier.removed_at is not None:
                set_member(connection, name, **row)
                connection.execute(update(identities).where(identities.c.member == name).values(good_until=None))
            else:
                raise UserError(f"'{name}' is a member already; a new token: mlcd team token {name}")
            ensure_team(connection, team)
        return token

    def renew(self, name: str, keep_named: bool = False) -> str:
        """Make a new token for a member. The old one and all sessions become invalid; named tokens too, unless kept."""
        token = new_secret()
        with self.database.write() as connection:
            find_member(connection, name)
            set_member(connection, name, token_hash=hashed(token))
            end_sessions(connection, name)
            if not keep_named:
                revoke_named_tokens(connection, name, _text(self.now()))
        return token

    def remove(self, name: str) -> None:
        """Remove a member: tokens and sessions become invalid. Their runs stay, and count for their team."""
        with self.database.write() as connection:
            check_not_last_admin(connection, find_member(connection, name))
            set_member(connection, name, removed_at=_text(self.now()))
            end_sessions(connection, name)
            revoke_named_tokens(connection, name, _text(self.now()))
            delete_receivers(connection, name)

    def change(self, name: str, **changes: Any) -> Member:
        """Change `role`, `team`, `budget_usd` or `budget_per`; the others stay. None: no team, no limit.

        Existing runs count for the team in which they were submitted.
        """
        row = _checked(changes)
        with self.database.write() as connection:
            member = find_member(connection, name)
            if row.get("role", Role.ADMIN) != Role.ADMIN:
                check_not_last_admin(connection, member)
            if row:
                set_member(connection, name, **row)
            ensure_team(connection, row.get("team"))
            return find_member(connection, name)

    def all(self) -> list[Member]:
        """The members, by name."""
        with self.database.read() as connection:
            return _all(connection)

    def get(self, name: str) -> Member:
        """The member of that name."""
        with self.database.read() as connection:
            return find_member(connection, name)

    def by_token(self, token: str) -> Member | None:
        """The member with this token; None if there is none.

        The database looks up the hash. Its timing reveals nothing, since nobody can choose a token by its hash.
        """
        let_in = self._is_admitted()
        query = select(*_COLUMNS).where(members.c.token_hash == hashed(token), let_in)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
            named = connection.execute(_NAMED.where(tokens.c.hash == hashed(token), let_in)).one_or_none()
        if row is not None:
            return _member(*row)
        return None if named is None else self._with_named(hashed(token), *named)

    def _is_admitted(self) -> ColumnElement[bool]:
        """The condition for access: not removed and, if linked to a sign-in provider, signed in recently enough."""
        return and_(_PRESENT, members.c.name.not_in(lapsed_members(self.now())))

    def _with_named(
        self, digest: str, name: str, scope: str, expires_at: str | None, used_at: str | None, *row: Any
    ) -> Member | None:
        """The member of a named token, None if it has expired; its last use is recorded to the minute."""
        now = self.now()
        if expires_at is not None and now >= datetime.fromisoformat(expires_at):
            return None
        if used_at is None or now - datetime.fromisoformat(used_at) >= NOTED_EVERY:
            with suppress(LedgerError), self.database.write() as connection:  # not worth refusing a request
                connection.execute(update(tokens).where(tokens.c.hash == digest).values(used_at=_text(now)))
        member, limited = _member(*row), Scope(scope)
        role = member.role if limited.most.may(member.role) else limited.most
        return replace(member, role=role, scope=limited, token=name)

    def open_session(self, member: Member, lasts: timedelta = SESSION_LASTS) -> str:
        """Open a session of some hours for a browser; return its secret."""
        secret, now = new_secret(), self.now()
        row = {"hash": hashed(secret), "created_at": _text(now), "expires_at": _text(now + lasts)}
        with self.database.write() as connection:
            find_member(connection, member.name)  # they may have been removed meanwhile
            connection.execute(delete(sessions).where(sessions.c.expires_at < _text(now)))
            connection.execute(insert(sessions).values(member=member.name, **row))
        return secret

    def by_session(self, secret: str) -> Member | None:
        """The member of this session; None if there is none, or if it has expired."""
        query = select(sessions.c.expires_at, *_COLUMNS).join(members, members.c.name == sessions.c.member)
        with self.database.read() as connection:
            row = connection.execute(query.where(sessions.c.hash == hashed(secret), self._is_admitted())).one_or_none()
        return None if row is None or self.now() >= datetime.fromisoformat(row[0]) else _member(*row[1:])

    def close_session(self, secret: str) -> None:
        """Close a session; no error if there is none."""
        with self.database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.hash == hashed(secret)))

    def set_team_budget(self, team: str, usd: float | None, per: Per | None = None) -> Budget:
        """Set the budget of all runs of a team together, None for no limit. Without `per`, the period stays."""
        check_name("team", team)
        row = _checked({"budget_usd": usd} | ({} if per is None else {"budget_per": per}))
        with self.database.write() as connection:
            ensure_team(connection, team)
            connection.execute(update(teams).where(teams.c.name == team).values(**row))
            return budget_of(connection, teams, team)

    def teams(self) -> dict[str, Budget]:
        """The teams and their budgets."""
        query = select(teams.c.name, teams.c.budget_usd, teams.c.budget_per).order_by(teams.c.name)
        with self.database.read() as connection:
            return {name: Budget(usd, Per(per or Per.TOTAL)) for name, usd, per in connection.execute(query)}


def lapsed_members(now: datetime) -> Select[tuple[str]]:
    """The names of members who would have to sign in at the provider again before they may use the service."""
    return select(identities.c.member).where(identities.c.good_until <= _text(now))


def new_secret() -> str:
    """A new secret: `mlcd_` and 43 letters, digits, - and _."""
    return PREFIX + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """The hash that is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def without_secrets(text: str) -> str:
    """The text with anything that looks like one of our secrets masked."""
    return _SECRET.sub(f"{PREFIX}***", text)


def find_member(connection: Connection, name: str) -> Member:
    """The member of that name, within the caller's transaction."""
    row = None
    if _NAME.fullmatch(name):  # some texts cannot be sent to a database
        row = connection.execute(select(*_COLUMNS).where(members.c.name == name, _PRESENT)).one_or_none()
    if row is None:
        raise UnknownName("member", name, (member.name for member in _all(connection)))
    return _member(*row)


def budget_of(connection: Connection, table: Table, name: str) -> Budget:
    """The budget of a member, also a removed one, or of a team, within the caller's transaction."""
    query = select(table.c.budget_usd, table.c.budget_per).where(table.c.name == name)
    row = connection.execute(query).one_or_none()
    return NO_LIMIT if row is None else Budget(row.budget_usd, Per(row.budget_per or Per.TOTAL))


def check_name(what: str, name: str) -> None:
    """`UserError` if no member, or team, can have that name."""
    if _NAME.fullmatch(name) is None:
        rule = "a name has up to 60 small letters, digits and . _ @ -, and begins with a letter or digit"
        raise UserError(f"{what} {name[:60]!r}: {rule}")


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _member(name: str, role: str, team: str | None, budget_usd: float | None, budget_per: str | None) -> Member:
    return Member(name, Role(role), team, budget_usd, Per(budget_per or Per.TOTAL))


def _all(connection: Connection) -> list[Member]:
    query = select(*_COLUMNS).where(_PRESENT).order_by(members.c.name)
    return [_member(*row) for row in connection.execute(query)]


def set_member(connection: Connection, name: str, **row: Any) -> None:
    """Change columns of a member, within the caller's transaction. So do the next functions."""
    connection.execute(update(members).where(members.c.name == name).values(**row))


def end_sessions(connection: Connection, name: str) -> None:
    """End all sessions of a member."""
    connection.execute(delete(sessions).where(sessions.c.member == name))


def delete_receivers(connection: Connection, name: str) -> None:
    """Delete a member's own receivers of notifications."""
    connection.execute(delete(receivers).where(receivers.c.owner == name))


def revoke_named_tokens(connection: Connection, name: str, at: str) -> None:
    """End all named tokens of a member."""
    theirs = update(tokens).where(tokens.c.member == name, tokens.c.revoked_at.is_(None))
    connection.execute(theirs.values(revoked_at=at))


def ensure_team(connection: Connection, team: str | None) -> None:
    """Create the team if it does not exist."""
    if team is not None and connection.execute(select(teams.c.name).where(teams.c.name == team)).first() is None:
        connection.execute(insert(teams).values(name=team, budget_usd=None))


def check_not_last_admin(connection: Connection, member: Member) -> None:
    """`WrongState` if nobody could manage the team without this one."""
    admins = [other for other in _all(connection) if other.role is Role.ADMIN]
    if member.role is Role.ADMIN and len(admins) == 1:
        raise WrongState(f"'{member.name}' is the only admin; make another member an admin first")


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """The row, if all its values are valid."""
    if row.get("team") is not None:
        check_name("team", row["team"])
    usd = row.get("budget_usd")
    if usd is not None and not (math.isfinite(usd) and usd >= 0):
        raise UserError(f"budget {usd}: expected dollars, zero or more, such as 100; or no limit")
    words = {key: str(kind(row[key])) for key, kind in (("role", Role), ("budget_per", Per)) if key in row}
    return row | words
