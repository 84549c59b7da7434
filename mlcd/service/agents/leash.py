"""What an agent may do. It is set by who starts the server; nothing that the agent says changes it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Step = Literal["search", "launch"]
"""What may cost money: probes, or the job itself."""


class May(StrEnum):
    """Each includes those before it."""

    LOOK = "look"
    PROBE = "probe"
    LAUNCH = "launch"

    def includes(self, other: "May") -> bool:
        """Whether it allows what the other one allows."""
        order = list(May)
        return order.index(self) >= order.index(other)


class Ask(StrEnum):
    """Where a person is asked for a yes: by the assistant's own program where it can, or only by `mlcd yes`."""

    CLIENT = "client"
    TERMINAL = "terminal"


@dataclass(frozen=True)
class Leash:
    """`yes`: searches within the budget are not asked about. What may be launched unasked: see `asks_for`."""

    may: May = May.LOOK
    yes: bool = False
    ask: Ask = Ask.CLIENT

    def asks_for(self, step: Step) -> bool:
        """Whether a person has to say yes before a step that counts against the agent's budget."""
        if self.may is May.LAUNCH:
            return False
        return not (step == "search" and self.yes)

    @property
    def words(self) -> str:
        """What it may do, in a sentence for the agent."""
        if self.may is May.LOOK:
            return "It may look and compute. Searches and launches are for its user."
        if self.may is May.LAUNCH:
            return "It may search and launch within its budget, without asking."
        searches = "may search within its budget" if self.yes else "may search, once a person says yes to each search"
        return f"It {searches}. Each launch takes a person's yes."
