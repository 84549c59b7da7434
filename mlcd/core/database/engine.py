"""A database, open: reading, and writing one after the other.

Whoever writes waits until the one before has committed: BEGIN IMMEDIATE on SQLite, an advisory lock on PostgreSQL.
So the order of `seq` is the order of commits, and who has seen entry n has seen all before it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from mlcd.core.database.connect import postgres_engine, sqlite_engine, transaction
from mlcd.core.database.failures import explained, explained_files
from mlcd.core.database.upgrade import prepare
from mlcd.core.errors import LedgerError, UserError

ODD = "odd characters of the password as %40 for @, %2F for /, %23 for #"
FORMS = "postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:////FOLDER/FILE"


def open_database(where: Path | str | None) -> Database:
    """Open a SQLite file, or the URL of a database, and bring its tables up to date; None is kept in memory."""
    return Database(_url(where))


class Database:
    """A SQLite file, a memory, or a database of PostgreSQL. Any number of threads may share it.

    `name` is for messages; `url` has the password in it and is never shown.
    """

    def __init__(self, url: URL) -> None:
        self.dialect = url.get_backend_name()
        self.path = Path(url.database) if self.dialect == "sqlite" and url.database else None
        self.url = url.render_as_string(hide_password=False)
        self.name = _name(url)
        self._own = threading.local()
        self._closed = False
        # A memory has one connection, for one thread at a time.
        alone = self.dialect == "sqlite" and self.path is None
        self._turn: AbstractContextManager[object] = threading.RLock() if alone else nullcontext()
        with explained_files(self.name):
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with suppress(OSError):  # SQLite itself says what is wrong; but it would make a file for all to read
                    os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._engine = sqlite_engine(self.path) if self.dialect == "sqlite" else postgres_engine(url)
        weakref.finalize(self, self._engine.dispose)  # psycopg warns of a connection that nobody has closed
        # Reading needs no transaction: each statement sees what is committed then.
        self._reading = self._engine
        if self.dialect == "postgresql":
            self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            prepare(self)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read with. Inside a `write` of this thread it sees what that has written."""
        inside: Connection | None = getattr(self._own, "connection", None)
        if inside is not None:
            yield inside
            return
        self._check_open()
        with explained(self.name), self._turn, self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: on disk when this ends, undone if anything is raised. Inside another one, a part of that."""
        inside: Connection | None = getattr(self._own, "connection", None)
        if inside is not None:
            yield inside
            return
        self._check_open()
        with explained(self.name), self._turn, self._engine.connect() as connection, transaction(connection):
            self._own.connection = connection
            try:
                yield connection
            finally:
                self._own.connection = None

    def lone_connection(self) -> Connection:
        """A connection that is shared with nobody, and whoever asked for it closes it."""
        self._check_open()
        with explained(self.name):
            connection = self._engine.connect()
            connection.detach()
            return connection

    def close(self) -> None:
        """Close it for good: connections at once, that of a memory when whoever uses it is done."""
        with self._turn:
            self._closed = True
            self._engine.dispose()

    def _check_open(self) -> None:
        if self._closed:  # SQLAlchemy would quietly connect again
            raise LedgerError("was closed", self.name)


def _url(where: Path | str | None) -> URL:
    """The URL of a place; where it is wrong it is not repeated: there may be a password in it."""
    if not isinstance(where, str):
        return URL.create("sqlite", database=None if where is None else str(where))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        raise UserError(f"the database's URL cannot be read; write {FORMS}") from None
    kind = url.drivername.split("+")[0]
    if kind not in ("postgresql", "postgres", "sqlite"):
        raise UserError(f"MLCD keeps no ledger in '{kind}'; write {FORMS}")
    if kind == "sqlite":
        return URL.create("sqlite", database=url.database)
    if not set("@/#? ").isdisjoint((url.host or "") + (url.database or "")):  # the end of a password, it seems
        raise UserError(f"the database's URL cannot be read: write {ODD}")
    return url.set(drivername="postgresql")


def _name(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or "the ledger in memory"
    # Nothing behind a question mark: a secret may stand there, too.
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database).render_as_string()
