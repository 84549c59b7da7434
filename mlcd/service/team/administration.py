"""Administration of a team on its database: each action is carried out and written to the audit log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mlcd.core.ledger import Ledger
from mlcd.service.team.allowance import Used, remaining_budget, used
from mlcd.service.team.audit import Audit, AuditEntry
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Members
from mlcd.service.team.role import Role


class Team:
    """The team on the database of a ledger. `who`: the admin, for the audit log; `now`: the clock."""

    def __init__(self, ledger: Ledger, who: str, now: Callable[[], datetime]) -> None:
        self._ledger, self._who, self._now = ledger, who, now
        self._members, self._audit = Members(ledger.database, now), Audit(ledger.database, now)

    def members(self) -> list[tuple[Member, Used, float | None]]:
        """The members by name, with what they have used and their remaining budget; None for no limit."""
        ledger, now = self._ledger, self._now
        return [
            (each, used(ledger, each, now), remaining_budget(ledger, each, now).usd) for each in self._members.all()
        ]

    def teams(self) -> dict[str, tuple[Budget, Used]]:
        """The teams, their budgets, and what is used of them."""
        return {team: (budget, used(self._ledger, team, self._now)) for team, budget in self._members.teams().items()}

    def add(
        self, name: str, role: Role, team: str | None, budget_usd: float | None, budget_per: Per
    ) -> tuple[Member, str]:
        """Add a member; also returns the token, which is shown only once."""
        token = self._members.add(name, role, team, budget_usd, budget_per)
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

    def set_budget(self, team: str, usd: float | None, **per: Per) -> Budget:
        """Set the budget of all runs of a team together; None for no limit. Without `per`, the period stays."""
        budget = self._members.set_team_budget(team, usd, **per)
        self._audit.write(self._who, "team budget", team, detail=str(budget))
        return budget

    def audit(self, most: int, before: int | None = None) -> list[AuditEntry]:
        """The audit log, the newest first; `before`: only entries before this number."""
        return self._audit.entries(most, before)
