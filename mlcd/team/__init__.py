"""A team: who is in it, what each may do and still spend, and what was done."""

from mlcd.team.allowance import Left, OverBudget, Used, left, recheck, release, submit, used
from mlcd.team.audit import Audit, AuditEntry
from mlcd.team.budget import Budget, Per
from mlcd.team.deeds import Team
from mlcd.team.members import SESSION_LASTS, Member, Members
from mlcd.team.role import Role

__all__ = [
    "SESSION_LASTS",
    "Audit",
    "AuditEntry",
    "Budget",
    "Left",
    "Member",
    "Members",
    "OverBudget",
    "Per",
    "Role",
    "Team",
    "Used",
    "left",
    "recheck",
    "release",
    "submit",
    "used",
]
