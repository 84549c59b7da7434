"""What whoever rules a team can do, on its database: each deed is done, and written to the audit log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mlcd.ledger import Ledger
from mlcd.team.allowance import left
from mlcd.team.audit import Audit, AuditEntry
from mlcd.team.members import Member, Members, limit_words
from mlcd.team.role import Role


class Team:
    """The team on the database of a ledger. `who` does it, for the audit log; `now` gives the time of day."""

    def __init__(self, ledger: Ledger, who: str, now: Callable[[], datetime]) -> None:
        self._ledger, self._who = ledger, who
        self._members, self._audit = Members(ledger.database, now), Audit(ledger.database, now)

    def members(self) -> list[tuple[Member, float | None]]:
        """The members, by name, and what each may still ask for; None for no limit."""
        return [(member, left(self._ledger, member).usd) for member in self._members.all()]

    def teams(self) -> dict[str, float | None]:
        """The teams, and what each may spend; None for no limit."""
        return self._members.teams()

    def add(self, name: str, role: Role, team: str | None, budget_usd: float | None) -> tuple[Member, str]:
        """A new member, and the token, which is shown this once."""
        token = self._members.add(name, role, team, budget_usd)
        member = self._members.get(name)
        self._audit.write(self._who, "add member", name, detail=str(member))
        return member, token

    def change(self, name: str, **told: Any) -> Member:
        """Another `role`, `team` or `budget_usd`; what is not named stays, None says 'no team' or 'no limit'."""
        member = self._members.change(name, **told)
        self._audit.write(self._who, "change member", name, detail=str(member))
        return member

    def renew(self, name: str) -> tuple[Member, str]:
        """A new token for a member; the old one and all sessions are void from now on."""
        token = self._members.renew(name)
        self._audit.write(self._who, "renew token", name)
        return self._members.get(name), token

    def remove(self, name: str) -> None:
        """No member any more; their runs stay."""
        self._members.remove(name)
        self._audit.write(self._who, "remove member", name)

    def set_budget(self, team: str, usd: float | None) -> None:
        """What all runs of a team may spend together; None for no limit."""
        self._members.set_team_budget(team, usd)
        self._audit.write(self._who, "team budget", team, detail=limit_words(usd))

    def audit(self, most: int, before: int | None = None) -> list[AuditEntry]:
        """What was done, the newest first; `before`: what is older than the entry of this number."""
        return self._audit.entries(most, before)
