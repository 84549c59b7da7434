"""A team: its members, their roles and budgets, and the audit log."""

from mlcd.service.team.administration import Audit, AuditEntry, Team
from mlcd.service.team.allowance import (
    OverBudget,
    RemainingBudget,
    Used,
    recheck,
    release,
    remaining_budget,
    submit,
    used,
)
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import SESSION_LASTS, Member, Members, Role

__all__ = [
    "SESSION_LASTS",
    "Audit",
    "AuditEntry",
    "Budget",
    "Member",
    "Members",
    "OverBudget",
    "Per",
    "RemainingBudget",
    "Role",
    "Team",
    "Used",
    "recheck",
    "release",
    "remaining_budget",
    "submit",
    "used",
]
