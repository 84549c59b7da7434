"""The roles of members. Each includes the rights of those before it."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """Viewers see all runs, runners submit and stop their own, admins stop any run and manage the team."""

    VIEWER = "viewer"
    RUNNER = "runner"
    ADMIN = "admin"

    def may(self, other: Role) -> bool:
        """Whether this role includes the other one."""
        order = list(Role)
        return order.index(self) >= order.index(other)
