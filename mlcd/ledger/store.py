"""The ledger's file: one SQLite table, append-only, safe against crashes.

Every append is a transaction of its own, on disk before it returns. Triggers refuse any change of what
is written. The columns beside `body` repeat what a person wants to read, so that
`sqlite3 ledger.db 'select * from entries'` tells the story without our code.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mlcd.clock import Clock
from mlcd.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerLocked,
    LedgerReadOnly,
    LedgerTooNew,
    UnknownName,
    WrongState,
)
from mlcd.ledger.account import Account, BrokenBooks
from mlcd.ledger.entries import Entry, Refused, Reserved, Settled, Voided, from_json, to_json

SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 5.0
MOST_LETTERS = 60
"""Of a run's name: it names files and machines, too."""

_SCHEMA = f"""
CREATE TABLE entries (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    run           TEXT NOT NULL,
    written_at    TEXT NOT NULL,
    elapsed_s     REAL NOT NULL,
    kind          TEXT NOT NULL,
    instance_type TEXT,
    nodes         INTEGER,
    usd           REAL,
    seconds       REAL,
    because       TEXT,
    body          TEXT NOT NULL
);
CREATE INDEX entries_by_run ON entries (run, seq);
CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
PRAGMA user_version = {SCHEMA_VERSION};
"""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it stands in the file."""

    seq: int
    run: str
    written_at: datetime
    elapsed_s: float
    entry: Entry


class Ledger:
    """A ledger file with any number of runs."""

    def __init__(self, path: Path | None) -> None:
        """Open the file, creating it if need be; None keeps the ledger in memory."""
        self.path = path
        with _explained(path):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path or ":memory:", timeout=BUSY_TIMEOUT_S, isolation_level=None)
            try:
                self._db.execute("PRAGMA synchronous = FULL")
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def begin(self, name: str, clock: Clock, entry: Entry, listen: Callable[[Line], None] | None = None) -> Book:
        """A new run, named after its job: resnet-1, resnet-2 ..."""
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower())[:MOST_LETTERS].strip("-") or "run"
        with _explained(self.path), self._transaction():
            rows = self._db.execute("SELECT DISTINCT run FROM entries WHERE run LIKE ? || '-%'", (stem,)).fetchall()
            taken = [int(match[1]) for (run,) in rows if (match := re.fullmatch(rf"{stem}-(\d+)", run))]
            run = f"{stem}-{max(taken, default=0) + 1}"
            line = self._insert(run, clock, entry)
        book = Book(self, run, clock, Account.replay([(entry, line.elapsed_s)]), listen)
        if listen is not None:
            listen(line)
        return book

    def book(self, run: str, clock: Clock, listen: Callable[[Line], None] | None = None) -> Book:
        """An existing run, to go on with."""
        return Book(self, self.find(run), clock, self.account(run), listen)

    def append(self, run: str, clock: Clock, entry: Entry) -> Line:
        """Write one entry; it is on disk when this returns."""
        with _explained(self.path), self._transaction():
            return self._insert(run, clock, entry)

    def lines(self, run: str) -> list[Line]:
        """The entries of a run, in order."""
        found = self.find(run)
        with _explained(self.path):
            rows = self._db.execute(
                "SELECT seq, run, written_at, elapsed_s, body FROM entries WHERE run = ? ORDER BY seq", (found,)
            ).fetchall()
        try:
            lines = [
                Line(seq, run, datetime.fromisoformat(written_at), elapsed_s, from_json(body))
                for seq, run, written_at, elapsed_s, body in rows
            ]
            Account.replay((line.entry, line.elapsed_s) for line in lines)
        except (ValueError, TypeError, BrokenBooks) as error:
            raise LedgerCorrupt(f"{self.path}: damaged in run '{found}'; restore the file from a copy") from error
        return lines

    def account(self, run: str) -> Account:
        """Where a run stands."""
        return Account.replay((line.entry, line.elapsed_s) for line in self.lines(run))

    def runs(self) -> list[str]:
        """The runs, oldest first."""
        with _explained(self.path):
            rows = self._db.execute("SELECT run FROM entries GROUP BY run ORDER BY MIN(seq)").fetchall()
        return [run for (run,) in rows]

    def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest."""
        runs = self.runs()
        if run == "last" and runs:
            return runs[-1]
        if run not in runs:
            raise UnknownName("run", run, runs)
        return run

    @contextmanager
    def hold(self, run: str) -> Iterator[None]:
        """Be the only process that drives this run. The lock goes with the process, however it dies."""
        if self.path is None:
            yield
            return
        folder = self.path.parent / "locks"
        try:
            folder.mkdir(exist_ok=True)
            handle = os.open(folder / f"{run}.lock", os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise _explain_os(error, self.path) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WrongState(f"run '{run}' is being driven by another process; wait for it, or stop it") from None
            yield
        finally:
            os.close(handle)

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise LedgerTooNew(
                f"{self.path}: written by a newer MLCD (format {version}, this one reads {SCHEMA_VERSION}); "
                "upgrade with pip install -U mlcd, or choose another folder with MLCD_HOME"
            )
        if version == 0:
            with self._transaction():
                # Asked again inside the transaction: another process may have created it meanwhile.
                if self._db.execute("PRAGMA user_version").fetchone()[0] == 0:
                    if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                        raise self._not_a_ledger()
                    for statement in _statements(_SCHEMA):
                        self._db.execute(statement)
        elif not self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'entries'").fetchone()[0]:
            raise self._not_a_ledger()

    def _not_a_ledger(self) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"{self.path}: a SQLite file, but not a ledger; move it away, or choose another folder with MLCD_HOME"
        )

    def _insert(self, run: str, clock: Clock, entry: Entry) -> Line:
        now, elapsed_s = clock.now().astimezone(UTC), clock.elapsed_s()
        instance_type, nodes, usd, seconds, because = _told(entry)
        cursor = self._db.execute(
            "INSERT INTO entries (run, written_at, elapsed_s, kind, instance_type, nodes, usd, seconds, because, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (run, now.isoformat(), elapsed_s, entry.kind, instance_type, nodes, usd, seconds, because, to_json(entry)),
        )
        return Line(cursor.lastrowid or 0, run, now, elapsed_s, entry)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # SQLite has rolled back by itself when the disk is full
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


class Book:
    """One run of a ledger, open for writing: append an entry, and the account follows."""

    def __init__(
        self, ledger: Ledger, run: str, clock: Clock, account: Account, listen: Callable[[Line], None] | None
    ) -> None:
        self.run = run
        self.clock = clock
        self.account = account
        self._ledger = ledger
        self._listen = listen

    def write(self, entry: Entry) -> None:
        """Append the entry: first the rules, then the disk, then the account, then whoever watches."""
        elapsed_s = self.clock.elapsed_s()
        after = self.account.after(entry, elapsed_s)
        line = self._ledger.append(self.run, self.clock, entry)
        self.account = after if line.elapsed_s == elapsed_s else self.account.after(entry, line.elapsed_s)
        if self._listen is not None:
            self._listen(line)


def _told(entry: Entry) -> tuple[str | None, int | None, float | None, float | None, str | None]:
    """What the readable columns say of an entry: instance type, nodes, usd, seconds, because."""
    because: str | None = getattr(entry, "because", None)
    match entry:
        case Reserved(launch=launch):
            configuration = launch.configuration
            return configuration.offer.name, configuration.nodes, entry.worst_usd, entry.worst_s, because
        case Settled(measurement=measurement):
            configuration = measurement.configuration
            told = measurement.detail or str(measurement.outcome)
            return configuration.offer.name, configuration.nodes, measurement.usd, measurement.seconds, told
        case Voided(launch=launch):
            return launch.configuration.offer.name, launch.configuration.nodes, 0.0, 0.0, because
        case Refused(configuration=configuration):
            return configuration.offer.name, configuration.nodes, None, None, because
        case _:
            return None, None, None, None, because


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit our transaction first."""
    statement = ""
    for line in script.strip().splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def _explained(path: Path | None) -> Iterator[None]:
    """Turn what SQLite and the operating system raise into one of our errors: the only place that does."""
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
        return LedgerFull(f"{path}: the disk is full; nothing was lost, make room and resume")
    if name.startswith("SQLITE_CANTOPEN"):
        return LedgerReadOnly(f"{path}: cannot be opened; check the folder, or choose another with MLCD_HOME")
    # What SQLite can read but we did not write is damage, too: a column gone, or, without a name, text not in UTF-8.
    unnamed = not name and isinstance(error, sqlite3.OperationalError)
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_SCHEMA")) or name == "SQLITE_ERROR" or unnamed:
        return LedgerCorrupt(f"{path}: not a ledger, or damaged; move it away, or restore it from a copy")
    return LedgerError(f"{path}: {error}; check the disk, then go on where the run stopped with mlcd resume")


def _explain_os(error: OSError, path: Path | None) -> LedgerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerFull(f"{path}: the disk is full; nothing was lost, make room and resume")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return LedgerReadOnly(f"{path}: a file stands where its folder should be; choose a folder with MLCD_HOME")
    return LedgerReadOnly(f"{path}: {error.strerror or error}; choose another folder with MLCD_HOME")
