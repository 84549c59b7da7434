"""The interface of a crew: the processes that drive runs for a service or for `mlcd ui`."""

from __future__ import annotations

from typing import Protocol

from mlcd.core.ledger import Ledger

NEVER_BEGAN = "stopped before it began"


class Crew(Protocol):
    """Drives runs in separate processes, never in the calling one."""

    def send(self, run: str, launch: bool = False) -> None:
        """Start a submitted run, or resume one; `launch`: also run the decided configuration."""
        ...

    def stop(self, run: str) -> None:
        """Ask a run to stop after its current step; nothing is lost. One that waits in the queue never starts."""
        ...

    def down(self, run: str) -> None:
        """End a run now, whichever process drives it, and tear its machines down."""
        ...

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue; True if therefore no process works on it."""
        ...

    def alive(self) -> int:
        """How many processes of the crew are alive."""
        ...

    def close(self) -> None:
        """Start no more processes. Whether active runs go on depends on the crew."""
        ...


def waits(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and has neither started nor been refused."""
    submission = ledger.asked(run)
    return submission is not None and submission.refused is None and not ledger.has_begun(run)


def refused(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and will never start."""
    submission = ledger.asked(run)
    return submission is not None and submission.refused is not None
