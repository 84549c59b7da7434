"""What whoever rules a team can do, on its database: each deed is done, and written to the audit log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mlcd.core.ledger import Ledger
from mlcd.service.team.allowance import Used, left, used
from mlcd.service.team.audit import Audit, AuditEntry
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members
from mlcd.service.team.role import Role


class Team:
    """The team on the database of a ledger. `who` does it, for the audit log; `now` gives the time of day."""

    def __init__(self, ledger: Ledger, who: str, now: Callable[[], datetime]) -> None:
        self._ledger, self._who, self._now = ledger, who, now
        self._members, self._audit = Members(ledger.database, now), Audit(ledger.database, now)

    def members(self) -> list[tuple[Member, Used, float | None]]:
        """The members, by name, what each has used of their budget, and may still ask for; None for no limit."""
        ledger, now = self._ledger, self._now
        return [(each, used(ledger, each, now), left(ledger, each, now).usd) for each in self._members.all()]

    def teams(self) -> dict[str, tuple[Budget, Used]]:
        """The teams, what each may spend, and what is used of that."""
        return {team: (budget, used(self._ledger, team, self._now)) for team, budget in self._members.teams().items()}

    def add(
        self, name: str, role: Role, team: str | None, budget_usd: float | None, budget_per: Per
    ) -> tuple[Member, str]:
        """A new member, and the token, which is shown this once."""
        token = self._members.add(name, role, team, budget_usd, budget_per)
        member = self._members.get(name)
        self._audit.write(self._who, "add member", name, detail=str(member))
        return member, token

    def change(self, name: str, **told: Any) -> Member:
        """Another `role`, `team`, `budget_usd` or `budget_per`. What is not named stays; None: no team, no limit."""
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

    def set_budget(self, team: str, usd: float | None, **per: Per) -> Budget:
        """What all runs of a team may spend together; None for no limit. `per`: as before, if it is not named."""
        budget = self._members.set_team_budget(team, usd, **per)
        self._audit.write(self._who, "team budget", team, detail=str(budget))
        return budget

    def audit(self, most: int, before: int | None = None) -> list[AuditEntry]:
        """What was done, the newest first; `before`: what is older than the entry of this number."""
        return self._audit.entries(most, before)
