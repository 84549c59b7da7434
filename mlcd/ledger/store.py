"""The ledger's file: one SQLite table, append-only, safe against crashes.

Every append is a transaction of its own, on disk before it returns. Triggers refuse any change of what
is written. The columns beside `body` repeat what a person wants to read, so that
`sqlite3 ledger.db 'select * from entries'` tells the story without our code.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mlcd.clock import Clock
from mlcd.errors import LedgerCorrupt, LedgerTooNew, UnknownName
from mlcd.ledger.account import Account, BrokenBooks
from mlcd.ledger.entries import (
    Decided,
    Entry,
    Refused,
    Reserved,
    Settled,
    Started,
    Voided,
    from_json,
    to_json,
)
from mlcd.ledger.failures import explained
from mlcd.ledger.lock import hold, holder

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
        with explained(path):
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
        stem = _stem(name)
        with explained(self.path), self._transaction():
            run = f"{stem}-{max(self._numbers(stem), default=0) + 1}"
            line = self._insert(run, clock, entry)
        book = Book(self, run, clock, Account.replay([(entry, line.elapsed_s)]), listen)
        if listen is not None:
            listen(line)
        return book

    def book(self, run: str, clock: Clock, listen: Callable[[Line], None] | None = None) -> Book:
        """An existing run, to go on with."""
        return Book(self, self.find(run), clock, self.account(run), listen)

    def append(self, run: str, clock: Clock, entries: Sequence[Entry]) -> list[Line]:
        """Write these entries, all or none; they are on disk when this returns."""
        with explained(self.path), self._transaction():
            return [self._insert(run, clock, entry) for entry in entries]

    def lines(self, run: str) -> list[Line]:
        """The entries of a run, in order."""
        found = self.find(run)
        with explained(self.path):
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

    def accounts(self, name: str, most: int) -> Iterator[Account]:
        """Where the runs of jobs of this name stand, the newest first. Damaged ones are passed over."""
        stem = _stem(name)
        with explained(self.path):
            numbers = sorted(self._numbers(stem), reverse=True)[:most]
        for number in numbers:
            with suppress(LedgerCorrupt):
                yield self.account(f"{stem}-{number}")

    def _numbers(self, stem: str) -> list[int]:
        rows = self._db.execute("SELECT DISTINCT run FROM entries WHERE run LIKE ? || '-%'", (stem,)).fetchall()
        return [int(match[1]) for (run,) in rows if (match := re.fullmatch(rf"{stem}-(\d+)", run))]

    def runs(self) -> list[str]:
        """The runs, oldest first."""
        with explained(self.path):
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

    def hold(self, run: str) -> AbstractContextManager[None]:
        """Be the only process that drives this run."""
        return nullcontext() if self.path is None else hold(self.path.parent / "locks", run)

    def is_driven(self, run: str) -> bool:
        """Whether some process drives this run now."""
        return self.driver(run) is not None

    def driver(self, run: str) -> int | None:
        """The process that drives this run now, or None."""
        return None if self.path is None else holder(self.path.parent / "locks", run)

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

    def write(self, *entries: Entry) -> None:
        """Append entries, all or none: first the rules, then the disk, then the account, then whoever watches."""
        allowed = self.account
        for entry in entries:
            allowed = allowed.after(entry, self.clock.elapsed_s())
        for line in self._ledger.append(self.run, self.clock, entries):
            self.account = self.account.after(line.entry, line.elapsed_s)
            if self._listen is not None:
                self._listen(line)


def _stem(name: str) -> str:
    """What the runs of a job are named after."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:MOST_LETTERS].strip("-") or "run"


def _told(entry: Entry) -> tuple[str | None, int | None, float | None, float | None, str | None]:
    """What the readable columns say of an entry: instance type, nodes, usd, seconds, because."""
    because: str | None = getattr(entry, "because", None)
    match entry:
        case Reserved(launch=launch):
            configuration = launch.configuration
            return configuration.offer.name, configuration.nodes, entry.worst_usd, entry.worst_s, because
        case Settled(measurement=measurement):
            configuration = measurement.configuration
            detail = f", {measurement.detail}" if measurement.detail else ""
            told = f"{measurement.outcome}{detail}"
            return configuration.offer.name, configuration.nodes, measurement.usd, measurement.seconds, told
        case Voided(launch=launch):
            return launch.configuration.offer.name, launch.configuration.nodes, 0.0, 0.0, because
        case Refused(configuration=configuration):
            return configuration.offer.name, configuration.nodes, None, None, because
        case Decided(decision=decision):
            chosen = decision.configuration
            place = (chosen.offer.name, chosen.nodes) if chosen is not None else (None, None)
            return *place, None, None, decision.because
        case Started(job=job, on=on):
            return None, None, None, None, f"{job.name} on {on}"
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
