"""The lock of the process that drives a run; it is released however the process dies.

With SQLite it is a file lock of the operating system; with PostgreSQL an advisory lock of a connection.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from pathlib import Path

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from mlcd.core.database import Database
from mlcd.core.database.engine import LOCKS, transaction
from mlcd.core.database.failures import UNREACHABLE, translated_errors, translated_file_errors
from mlcd.core.database.schema import entries
from mlcd.core.errors import LedgerUnreachable, MlcdError, UnknownName, WrongState
from mlcd.core.ledger.entries import LINES, Line, to_json, write

RECONNECT_S = 60.0
"""How long a driver tries to reconnect to its database."""
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses between attempts; the last one repeats."""
_TAKE = text("SELECT pg_try_advisory_lock(:locks, CAST(number AS integer)) FROM runs WHERE name = :run")
_DRIVEN = text(
    "SELECT runs.name FROM pg_locks JOIN runs ON pg_locks.objid = runs.number"
    " WHERE locktype = 'advisory' AND classid = :locks AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def hold(folder: Path, run: str) -> Iterator[None]:
    """Be the only process that drives this run."""
    with translated_file_errors(str(folder)):
        folder.mkdir(exist_ok=True)
        handle = os.open(_file(folder, run), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if not _take(handle):
            raise _is_driven(run)
        with translated_file_errors(str(folder)):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        try:
            yield
        finally:
            os.ftruncate(handle, 0)  # or the next driver would look like this process until it writes its own id
    finally:
        os.close(handle)


def holder(folder: Path, run: str) -> int | None:
    """The id of the process that drives this run now, or None; 0 if the process has not written its id."""
    try:
        handle = os.open(_file(folder, run), os.O_RDONLY)
    except OSError:  # never driven, or no permission
        return None
    try:
        if _lock(handle, fcntl.LOCK_SH):  # shared: several may check at once
            return None
        for pause_s in chain(PAUSES_S, [0.0]):
            if process := os.pread(handle, 20, 0):
                return int(process) if process.isdigit() else 0
            time.sleep(pause_s)  # it has the lock and is about to write its id
        return 0
    finally:
        os.close(handle)


def held(folder: Path) -> set[str]:
    """The runs that a process drives now."""
    return {path.stem for path in folder.glob("*.lock") if holder(folder, path.stem) is not None}


def _take(handle: int) -> bool:
    """Try to take the lock. Readers of `holder` have it shared for a moment: they are not drivers, so wait for them."""
    while not _lock(handle, fcntl.LOCK_EX):
        if not _lock(handle, fcntl.LOCK_SH):
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
    return True


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_driven(run: str) -> WrongState:
    return WrongState(f"run '{run}' is being driven by another process; wait for it, or: mlcd stop {run}")


def _file(folder: Path, run: str) -> Path:
    return folder / f"{run}.lock"


def driven_runs(database: Database) -> set[str]:
    """The runs that a process drives now, on any machine."""
    with database.read() as connection:
        return set(connection.execute(_DRIVEN, {"locks": LOCKS}).scalars())


@dataclass
class HeldRun:
    """A run on PostgreSQL that only this process drives, from `take` to `release`.

    Entries are written over the connection that holds the lock, so only the holder can write. If the connection breaks,
    the driver reconnects and continues, unless another process has taken the run over. An entry that was committed
    although its confirmation got lost is recognised and not written twice.
    """

    database: Database
    run: str
    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    _connection: Connection | None = None
    _last: int | None = None
    """The number of the run's newest entry; None after an interrupted write, when it is unknown."""
    _released: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> None:
        """Take the lock; `WrongState` if another process has it."""
        if not self._lock():
            self._drop()
            raise _is_driven(self.run)
        self._last = self._newest()

    def keep(self) -> None:
        """Check the connection, and take the lock again if it is lost: hours may pass between two entries.

        `WrongState` if another process has the lock, `LedgerUnreachable` while the database is away.
        """
        with self._turn:
            if self._released:
                return
            try:
                with translated_errors(self.database.name), self._open().begin():
                    self._open().exec_driver_sql("SELECT 1")
            except LedgerUnreachable:
                self._drop()
                if not self._lock():
                    self._drop()
                    raise self._taken_over() from None

    def release(self) -> None:
        """Release the lock."""
        with self._turn:
            self._released = True
            if self._connection is not None:
                # At once, instead of when the server notices that the connection is gone.
                with suppress(SQLAlchemyError):
                    self._connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
            self._drop()

    def append(self, drafts: Sequence[Line]) -> list[Line]:
        """Write these entries, all or none, and only once; wait for a database that is away."""
        with self._turn:
            try:
                if self._last is None:
                    self._last = self._newest()
                return self._write(drafts)
            except LedgerUnreachable:
                return self._write_again(drafts)

    def _write(self, drafts: Sequence[Line]) -> list[Line]:
        last, self._last = self._last, None
        try:
            with translated_errors(self.database.name), transaction(self._open()) as connection:
                lines = write(connection, drafts)
        except LedgerUnreachable:
            self._last = last
            raise
        self._last = lines[-1].seq if lines else last
        return lines

    def _write_again(self, drafts: Sequence[Line]) -> list[Line]:
        """Reconnect, take the lock again, and write the entries unless they were written after all."""
        until_s, pauses_s = self.now() + RECONNECT_S, chain(PAUSES_S, repeat(PAUSES_S[-1]))
        while True:
            self._drop()
            try:
                taken = self._lock()
                written = self._written(drafts)
                if taken and written:
                    self._last = written[-1].seq
                if taken:
                    return written or self._write(drafts)
                # The holder may be our own old connection, which the server has not yet closed.
                trouble: MlcdError = self._taken_over()
            except LedgerUnreachable as error:
                trouble = error
            if self.now() > until_s:
                raise trouble
            self.wait(next(pauses_s))

    def _lock(self) -> bool:
        self._connection = connection = self.database.unpooled_connection()
        with translated_errors(self.database.name), connection.begin():
            taken: bool | None = connection.execute(_TAKE, {"locks": LOCKS, "run": self.run}).scalar()
        if taken is None:
            self._drop()
            raise UnknownName("run", self.run, ())
        return taken

    def _newest(self) -> int:
        query = select(func.coalesce(func.max(entries.c.seq), 0)).where(entries.c.run == self.run)
        with translated_errors(self.database.name), self._open().begin():
            return int(self._open().execute(query).scalar_one())

    def _written(self, drafts: Sequence[Line]) -> list[Line]:
        """Lines that were written although the confirmation was lost; `WrongState` if another process wrote some."""
        if self._last is None:
            self._last = self._newest()
        query = LINES.where(entries.c.run == self.run, entries.c.seq > self._last)
        with translated_errors(self.database.name), self._open().begin():
            rows = self._open().execute(query).all()
        if not rows:
            return []
        ours = [(draft.written_at.isoformat(), to_json(draft.entry)) for draft in drafts]
        if [(row.written_at, row.body) for row in rows] != ours:
            raise self._taken_over()
        return [replace(draft, seq=row.seq) for draft, row in zip(drafts, rows, strict=True)]

    def _taken_over(self) -> WrongState:
        return WrongState(
            f"run '{self.run}' was taken over by another process while the database was away; this one leaves it"
        )

    def _open(self) -> Connection:
        if self._connection is None:
            raise LedgerUnreachable(UNREACHABLE, self.database.name)
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.close()
