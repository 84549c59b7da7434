"""What a member may do: look, run, or rule. Each may what those before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """Viewers see all runs, runners submit and end their own, admins end anybody's and say who is in the team."""

    VIEWER = "viewer"
    RUNNER = "runner"
    ADMIN = "admin"

    def may(self, other: Role) -> bool:
        """Whether this role is enough where that one is asked for."""
        order = list(Role)
        return order.index(self) >= order.index(other)
