"""Exit codes of commands. A test compares them with docs/reference/exit-codes.md."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """All exit codes. A number never changes its meaning."""

    DONE = 0
    UNFINISHED = 1
    """The job itself did not finish, a check found something missing, or a bug."""
    REFUSED = 2
    """Something that the user wrote, or the state of the run, does not allow it."""
    INFEASIBLE = 3
    """Nothing could be certified within the limits, and nothing was run."""
    YES_NEEDED = 4
    """It costs real money, and nobody has agreed; nothing was ordered."""
    UNAVAILABLE = 5
    """A place, a service or the ledger cannot be used now; the same command may work later."""
    INTERRUPTED = 130
    """Ctrl-C, or `mlcd stop`: what was measured is kept, and the run can be resumed."""
    ENDED = 131
    """SIGQUIT: `mlcd down` has ended the process that drove the run."""
    HANDED_OVER = 143
    """SIGTERM: another process continues the run."""
