"""All exceptions that MLCD raises on purpose. Exit codes: `mlcd/core/exit_codes.py`.

MlcdError                    one sentence a person can act on; the command line exits with its `exit_code`
 ├─ UserError                something the user wrote is wrong
 │   ├─ JobFileError         the job file: its message starts with file:line:column
 │   ├─ RecordingError       a recording: its message starts with file:line
 │   ├─ CatalogError         a catalog or price file
 │   ├─ UnknownName          no such method, backend, run ...: suggests the nearest
 │   └─ YesNeeded            it costs real money, and nobody has agreed
 ├─ LedgerError              the state file
 │   ├─ LedgerLocked         another process holds it
 │   ├─ LedgerReadOnly       it cannot be written
 │   ├─ LedgerFull           the disk is full
 │   ├─ LedgerTooNew         written by a newer MLCD
 │   ├─ LedgerCorrupt        not a ledger, or damaged
 │   └─ LedgerUnreachable    its database does not answer
 ├─ WrongState               the run is not in a state that allows this (finished, undecided, busy ...)
 ├─ MissingExtra             an optional part is not installed: says which `pip install`
 ├─ BackendError             a cloud request failed; machines may have been ordered, so the time is billed
 │   ├─ NothingOrdered       it failed before any machine was ordered: nothing is billed
 │   │   ├─ NoAccess         no permission: every other launch would fail too; also a UserError
 │   │   └─ NoCapacity       no such machines are available now; others may be
 │   └─ StillUp              its machines could not be torn down: the launch stays open in the ledger
 └─ Interrupted              Ctrl-C: says how to resume
     └─ Outage               the place cannot be used: says what to do, and how to resume
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from mlcd.core.exit_codes import ExitCode

MOST_NAMES = 30
"""Most known names that one message lists."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: "did you mean 'train'?", or the known names."""
    known = list(known)
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.6):
        return f"did you mean '{near[0]}'?"
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"known: {', '.join(known[:MOST_NAMES])}{more}" if known else "there is none yet"


class MlcdError(Exception):
    """Root of all deliberate errors; `str(error)` is one line for the user."""

    exit_code = ExitCode.REFUSED


class UserError(MlcdError):
    """Something the user wrote is wrong; the message says what, where and what to do."""


class JobFileError(UserError):
    """The job file cannot be used; the message starts with file:line:column. `more`: number of further mistakes."""

    def __init__(self, message: str, more: int = 0, file: str = "") -> None:
        super().__init__(message)
        self.more, self.file = more, file


class RecordingError(UserError):
    """A recording cannot be used; the message starts with the file and line."""


class CatalogError(UserError):
    """A catalog file, or an answer of a price API, cannot be used."""


class UnknownName(UserError):
    """An unknown name; the message suggests the nearest known one."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {what} '{name}': {nearest(name, sorted(set(known)))}")


class YesNeeded(UserError):
    """It costs real money, and nobody has agreed; nothing was ordered."""

    exit_code = ExitCode.YES_NEEDED


class LedgerError(MlcdError):
    """The ledger cannot be used. `reason`: why, without its path or address `where`, which not everybody may see."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason


class LedgerLocked(LedgerError):
    """Another process holds the state file."""

    exit_code = ExitCode.UNAVAILABLE


class LedgerReadOnly(LedgerError):
    """The state file cannot be written."""


class LedgerFull(LedgerError):
    """The disk under the state file is full."""

    exit_code = ExitCode.UNAVAILABLE


class LedgerTooNew(LedgerError):
    """The state file was written by a newer MLCD."""


class LedgerCorrupt(LedgerError):
    """The file is not a ledger, or it is damaged."""


class LedgerUnreachable(LedgerError):
    """The database that holds the ledger does not answer, or went away."""

    exit_code = ExitCode.UNAVAILABLE


class WrongState(MlcdError):
    """The run is not in a state that allows what was asked."""


class MissingExtra(MlcdError):
    """An optional part is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra that is not installed: pip install 'mlcd[{extra}]'")


class BackendError(MlcdError):
    """A cloud request failed. Machines may have been ordered, so the time is billed."""

    exit_code = ExitCode.UNAVAILABLE


class NothingOrdered(BackendError):
    """It failed before any request that creates machines was sent, so nothing is billed.

    Raise it only when that is certain: a request whose answer was lost may have created machines.
    """


class NoAccess(NothingOrdered, UserError):
    """The place refuses this user, or the user made a mistake: every other launch would fail too."""

    exit_code = ExitCode.REFUSED


class NoCapacity(NothingOrdered):
    """The place has no such machines now. Other configurations may be available."""


class StillUp(BackendError):
    """Machines could not be torn down and go on costing money: the launch stays open in the ledger."""


class Interrupted(MlcdError):
    """The user pressed Ctrl-C; everything measured so far is in the ledger."""

    exit_code = ExitCode.INTERRUPTED


class Outage(Interrupted):
    """The place cannot be used now; everything measured so far is in the ledger."""

    exit_code = ExitCode.UNAVAILABLE
