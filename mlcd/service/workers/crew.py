"""What the service needs of whoever drives the runs."""

from __future__ import annotations

from typing import Protocol

from mlcd.core.ledger import Ledger

NEVER_BEGAN = "stopped before it began"


class Crew(Protocol):
    """Drives runs in processes of their own, never in the one that asks."""

    def send(self, run: str, launch: bool = False) -> None:
        """Begin a run that was asked for, or go on with one; `launch`: run what is decided, too."""
        ...

    def stop(self, run: str) -> None:
        """Ask a run to stop after the step under way; nothing is lost. One that waits never begins."""
        ...

    def down(self, run: str) -> None:
        """End a run now, whoever drives it, and tear its machines down."""
        ...

    def withdraw(self, run: str) -> bool:
        """Let nobody go on with a run who has not begun to; True if nobody is at it because of that."""
        ...

    def alive(self) -> int:
        """How many processes of the crew are at work."""
        ...

    def close(self) -> None:
        """Send nobody any more; what that means for the runs under way is the crew's own."""
        ...


def waits(run: str, ledger: Ledger) -> bool:
    """Whether a run was asked for and has neither begun nor been refused."""
    asked = ledger.asked(run)
    return asked is not None and asked.refused is None and not ledger.has_begun(run)


def refused(run: str, ledger: Ledger) -> bool:
    """Whether a run was asked for and will never begin."""
    asked = ledger.asked(run)
    return asked is not None and asked.refused is not None
