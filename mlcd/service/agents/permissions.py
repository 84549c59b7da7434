"""What an agent may do. Whoever starts the server sets it; nothing that the agent sends changes it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Step = Literal["search", "launch"]
"""The steps that may cost money: probing, or running the job."""


class PermissionLevel(StrEnum):
    """What an agent may do; each level includes those before it."""

    LOOK = "look"
    PROBE = "probe"
    LAUNCH = "launch"

    def includes(self, other: "PermissionLevel") -> bool:
        """Whether this level is at least the other one."""
        order = list(PermissionLevel)
        return order.index(self) >= order.index(other)


class ApprovalChannel(StrEnum):
    """Where a person is asked for approval: in the assistant's program if it can ask, or only with `mlcd yes`."""

    CLIENT = "client"
    TERMINAL = "terminal"


@dataclass(frozen=True)
class Permissions:
    """An agent's permissions. `yes`: searches within its budget need no approval."""

    may: PermissionLevel = PermissionLevel.LOOK
    yes: bool = False
    ask: ApprovalChannel = ApprovalChannel.CLIENT

    def needs_approval(self, step: Step) -> bool:
        """Whether a person has to approve a step that counts against the agent's budget."""
        if self.may is PermissionLevel.LAUNCH:
            return False
        return not (step == "search" and self.yes)

    @property
    def words(self) -> str:
        """The permissions in a sentence for the agent."""
        if self.may is PermissionLevel.LOOK:
            return "It may look and compute, but not search or launch: its user does that."
        if self.may is PermissionLevel.LAUNCH:
            return "It may search and launch within its budget, without asking."
        searches = "may search within its budget" if self.yes else "may search, after a person has approved each search"
        return f"It {searches}. A person has to approve each launch."
