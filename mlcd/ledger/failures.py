"""What SQLite and the operating system raise about a ledger's file, as errors of ours. The only place that does."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlcd.errors import LedgerCorrupt, LedgerError, LedgerFull, LedgerLocked, LedgerReadOnly

DISK_IS_FULL = "the disk is full; nothing that was written is lost. Make room, then go on with: mlcd resume"


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Whatever goes wrong inside is told as one of our errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    except OSError as error:
        raise _explain_os(error, path) from error


def _explain(error: sqlite3.Error, path: Path | None) -> LedgerError:
    name: str = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerLocked(f"{path}: locked by another process; try again when it is done")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return LedgerReadOnly(f"{path}: read-only; make it writable, or choose another folder with MLCD_HOME")
    if name.startswith("SQLITE_FULL"):
        return LedgerFull(f"{path}: {DISK_IS_FULL}")
    if name.startswith("SQLITE_CANTOPEN"):
        return LedgerReadOnly(f"{path}: cannot be opened; check the folder, or choose another with MLCD_HOME")
    # What SQLite can read but we did not write is damage, too: a column gone, or, without a name, text not in UTF-8.
    unnamed = not name and isinstance(error, sqlite3.OperationalError)
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_SCHEMA")) or name == "SQLITE_ERROR" or unnamed:
        return LedgerCorrupt(f"{path}: not a ledger, or damaged; move it away, or restore it from a copy")
    return LedgerError(f"{path}: {error}; check the disk, then go on where the run stopped with mlcd resume")


def _explain_os(error: OSError, path: Path | None) -> LedgerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerFull(f"{path}: {DISK_IS_FULL}")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return LedgerReadOnly(f"{path}: a file stands where its folder should be; choose a folder with MLCD_HOME")
    return LedgerReadOnly(f"{path}: {error.strerror or error}; choose another folder with MLCD_HOME")
