"""A team: who is in it, what each may do and still spend, and what was done."""

from mlcd.team.allowance import Left, OverBudget, left, recheck, release, submit
from mlcd.team.audit import Audit, AuditEntry
from mlcd.team.deeds import Team
from mlcd.team.members import SESSION_LASTS, Member, Members, limit_words
from mlcd.team.role import Role

__all__ = [
    "SESSION_LASTS",
    "Audit",
    "AuditEntry",
    "Left",
    "Member",
    "Members",
    "OverBudget",
    "Role",
    "Team",
    "left",
    "limit_words",
    "recheck",
    "release",
    "submit",
]
