"""The audit log, and the administration of a team, whose actions are all written to it.

The log is an append-only table beside the ledger: who did what, and whether it was allowed. It never contains secrets:
callers pass names and outcomes, and anything that looks like a token is masked.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from sqlalchemy import ColumnElement, insert, select

from mlcd.core.database import Database, schema
from mlcd.core.errors import UserError
from mlcd.core.ledger import Ledger
from mlcd.service.sign_in.identities import Account, Identities
from mlcd.service.team.allowance import Used, remaining_budget, used
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members, Role, without_secrets

LONGEST_DATE = len("2026-11-19")
MOST_LETTERS = 500  # of a text: some texts come from requests


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """One thing that somebody did, or was refused."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    seq: Annotated[int, Field(description="The number of the entry.")]
    at: Annotated[datetime, Field(description="The time.")]
    who: Annotated[str, Field(description="The member, or the IP address of a client that is not signed in.")]
    action: Annotated[str, Field(description="The action, such as submit.")]
    about: Annotated[str, Field(description="The run, member or other thing that it concerns.")]
    outcome: Annotated[str, Field(description="ok, or refused.")]
    detail: Annotated[str, Field(description="Details, or why it was refused.")]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit entries: by who, action, outcome, and time (`since` inclusive, `until` exclusive)."""

    who: str | None = None
    action: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def read(
        cls, who: str | None, action: str | None, outcome: str | None, since: str | None, until: str | None
    ) -> "AuditFilter":
        """From the texts of a request; a date means its whole day in UTC."""
        return cls(who or None, action or None, outcome or None, moment(since), moment(until, end=True))

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter as SQL conditions."""
        columns = schema.audit.c
        equal = {"who": self.who, "action": self.action, "outcome": self.outcome}
        conditions = [columns[name] == value for name, value in equal.items() if value is not None]
        conditions += [columns.at >= _iso(self.since)] if self.since is not None else []
        return conditions + ([columns.at < _iso(self.until)] if self.until is not None else [])


ALL = AuditFilter()


def moment(text: str | None, *, end: bool = False) -> datetime | None:
    """Parse a date or time such as '2026-11-19' or '2026-11-19T12:00'; UTC by default. `end`: a date means its end."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (time + timedelta(days=1) if end and len(text) <= LONGEST_DATE else time).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UserError(f"time {text[:40]!r}: write a date such as 2026-11-19, or 2026-11-19T12:00") from None


class Audit:
    """The audit log of a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def write(self, who: str, action: str, about: str = "", outcome: str = "ok", detail: str = "") -> None:
        """Add an entry; it is on disk when this returns."""
        texts = {"who": who, "action": action, "about": about, "outcome": outcome, "detail": detail}
        row = {column: _clean(text) for column, text in texts.items()}
        with self._database.write() as connection:
            connection.execute(insert(schema.audit).values(at=_iso(self._now()), **row))

    def entries(self, most: int = 200, before: int | None = None, only: AuditFilter = ALL) -> list[AuditedAction]:
        """The entries, newest first; `before`: only entries before this number."""
        columns = schema.audit.c
        query = select(*(columns[each.name] for each in fields(AuditedAction))).order_by(columns.seq.desc()).limit(most)
        query = query.where(*only.conditions())
        if before is not None:
            query = query.where(columns.seq < before)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [AuditedAction(row[0], datetime.fromisoformat(row[1]), *row[2:]) for row in rows]


class Team:
    """The team on the database of a ledger. `who`: the admin, for the audit log; `now`: the clock."""

    def __init__(self, ledger: Ledger, who: str, now: Callable[[], datetime]) -> None:
        self._ledger, self._who, self._now = ledger, who, now
        self._members, self._audit = Members(ledger.database, now), Audit(ledger.database, now)
        self._identities = Identities(ledger.database, now)

    def members(self) -> list[tuple[Member, Used, float | None]]:
        """The members by name, with what they have used and their remaining budget; None for no limit."""
        ledger, now, members = self._ledger, self._now, self._members.all()
        return [(each, used(ledger, each, now), remaining_budget(ledger, each, now).usd) for each in members]

    def teams(self) -> dict[str, tuple[Budget, Used]]:
        """The teams, their budgets, and what is used of them."""
        return {team: (budget, used(self._ledger, team, self._now)) for team, budget in self._members.teams().items()}

    def add(self, name: str, role: Role, team: str | None, usd: float | None, per: Per) -> tuple[Member, str]:
        """Add a member; also returns the token, which is shown only once."""
        token = self._members.add(name, role, team, usd, per)
        member = self._members.get(name)
        self._audit.write(self._who, "add member", name, detail=str(member))
        return member, token

    def change(self, name: str, **changes: Any) -> Member:
        """Change `role`, `team`, `budget_usd` or `budget_per`; the others stay. None: no team, no limit."""
        member = self._members.change(name, **changes)
        self._audit.write(self._who, "change member", name, detail=str(member))
        return member

    def renew(self, name: str) -> tuple[Member, str]:
        """Make a new token for a member; the old one and all sessions become invalid."""
        token = self._members.renew(name)
        self._audit.write(self._who, "renew token", name)
        return self._members.get(name), token

    def remove(self, name: str) -> None:
        """Remove a member; their runs stay."""
        self._members.remove(name)
        self._audit.write(self._who, "remove member", name)

    def link(self, name: str, account: Account) -> None:
        """Link a sign-in provider's account to a member."""
        self._identities.link(name, account)
        self._audit.write(self._who, "link member", name, detail=str(account))

    def unlink(self, name: str) -> None:
        """Remove the link between a member and their account at the sign-in provider."""
        self._identities.unlink(name)
        self._audit.write(self._who, "unlink member", name)

    def set_budget(self, team: str, usd: float | None, **per: Per) -> Budget:
        """Set the budget of all runs of a team together; None for no limit. Without `per`, the period stays."""
        budget = self._members.set_team_budget(team, usd, **per)
        self._audit.write(self._who, "team budget", team, detail=str(budget))
        return budget

    def audit(self, most: int, before: int | None = None, only: AuditFilter = ALL) -> list[AuditedAction]:
        """The audit log, the newest first; `before`: only entries before this number."""
        return self._audit.entries(most, before, only)


def _iso(time: datetime) -> str:
    """The stored form: text that sorts by time."""
    return time.astimezone(UTC).isoformat()


def _clean(text: str) -> str:
    """One printable line without secrets, cut to the longest length."""
    line = "".join(letter if letter.isprintable() else " " for letter in without_secrets(text))
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"
