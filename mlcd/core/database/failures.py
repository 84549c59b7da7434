"""Translates errors of SQLite, PostgreSQL and the operating system into MLCD's. The only place that does."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from mlcd.core.errors import LedgerCorrupt, LedgerError, LedgerFull, LedgerLocked, LedgerReadOnly, LedgerUnreachable

DISK_IS_FULL = "the disk is full; nothing that was written is lost. Make room, then go on with: mlcd resume"
DAMAGED = "not a ledger, or damaged; move it away, or restore it from a copy"
LOCKED = "locked by another process; try again when it is done"
UNREACHABLE = "the database cannot be reached; see that PostgreSQL runs there and lets this machine in, then try again"


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Turn errors of the database of this name into MLCD's."""
    try:
        yield
    except DBAPIError as error:
        original = error.orig
        explain = _explain if isinstance(original, sqlite3.Error) else _explain_postgres
        raise explain(original or error, name) from error
    except UnicodeDecodeError as error:  # sqlite3, when its own error message quotes damaged data
        raise LedgerCorrupt(DAMAGED, name) from error
    except PoolTimeout as error:
        raise LedgerUnreachable("all connections of this process are in use; try again", name) from error


@contextmanager
def translated_file_errors(name: str) -> Iterator[None]:
    """The same for the operating system's errors about files and folders."""
    try:
        yield
    except OSError as error:
        raise _explain_os(error, name) from error


def _explain(error: BaseException, name: str) -> LedgerError:
    code: str = getattr(error, "sqlite_errorname", None) or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerLocked(LOCKED, name)
    if code.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return LedgerReadOnly("read-only; make it writable, or choose another folder with MLCD_HOME", name)
    if code.startswith("SQLITE_FULL"):
        return LedgerFull(DISK_IS_FULL, name)
    if code.startswith("SQLITE_CANTOPEN"):
        return LedgerReadOnly("cannot be opened; check the folder, or choose another with MLCD_HOME", name)
    # Also damage: a missing column (SQLITE_ERROR), or, without an error name, text that is not UTF-8.
    unnamed = not code and isinstance(error, sqlite3.OperationalError)
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_SCHEMA")) or code == "SQLITE_ERROR" or unnamed:
        return LedgerCorrupt(DAMAGED, name)
    return LedgerError(f"{error}; check the disk, then go on where the run stopped with mlcd resume", name)


def _explain_os(error: OSError, name: str) -> LedgerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerFull(DISK_IS_FULL, name)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return LedgerReadOnly("a file has the name of its folder; choose another folder with MLCD_HOME", name)
    return LedgerReadOnly(f"{error.strerror or 'unusable'}; choose another folder with MLCD_HOME", name)


STATES: tuple[tuple[str, type[LedgerError], str], ...] = (
    # The first match of a prefix of the SQLSTATE.
    ("53300", LedgerUnreachable, "PostgreSQL has no connection left; raise max_connections, or run fewer workers"),
    ("53100", LedgerFull, DISK_IS_FULL),
    ("53", LedgerUnreachable, "PostgreSQL is short of memory or disk; make room, then try again"),
    ("55P03", LedgerLocked, LOCKED),
    ("40", LedgerLocked, LOCKED),
    ("25006", LedgerReadOnly, "read-only; give the address of the server that takes writes"),
    ("42501", LedgerReadOnly, "this user may not write there; GRANT it the database, or give another user"),
    ("28", LedgerError, "wrong user or password; check the URL"),
    ("3D000", LedgerError, "there is no such database; make it with createdb, or check the URL"),
    ("42", LedgerCorrupt, "not a ledger, or damaged; use a database of its own, or restore it from a copy"),
    ("XX", LedgerCorrupt, "damaged; restore it from a copy"),
    ("08", LedgerUnreachable, UNREACHABLE),
    ("57P", LedgerUnreachable, UNREACHABLE),
    ("25P03", LedgerUnreachable, UNREACHABLE),
)
MESSAGES = (
    # Errors during connecting have no SQLSTATE, only a message.
    ("too many c", "53300"),
    ("connection slots are reserved", "53300"),
    ("authentication failed", "28"),
    ("no password supplied", "28"),
    ("role ", "28"),
)


def _explain_postgres(error: BaseException, name: str) -> LedgerError:
    message = " ".join(str(error).split())
    state: str = getattr(error, "sqlstate", None) or ""
    if not state:
        state = next((sqlstate for words, sqlstate in MESSAGES if words in message), "08")
        if "database " in message and " does not exist" in message:
            state = "3D000"
    for begins, kind, words in STATES:
        if state.startswith(begins):
            return kind(words, name)
    return LedgerError(f"{message}; check the server's log", name)
