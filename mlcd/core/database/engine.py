"""An open database: concurrent reads, serialized writes.

A writer waits until the previous one has committed: BEGIN IMMEDIATE on SQLite, an advisory lock on PostgreSQL. So the
order of `seq` is the order of commits: a reader that has seen entry n has seen all before it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import Pool, QueuePool, StaticPool

from mlcd.core.database.failures import translated_errors, translated_file_errors
from mlcd.core.database.preparation import prepare
from mlcd.core.errors import LedgerError, MissingExtra, UserError

BUSY_TIMEOUT_S = 5.0
"""How long a write to SQLite waits for another one."""
LOCKS = 0x6D6C6364
"""Class of MLCD's advisory locks in PostgreSQL: 0 is the writers' lock, other numbers are locks of runs."""
SERVER_SETTINGS = {
    "lock_timeout": "30s",
    # Limits how long a hanging writer blocks the others, and a machine without network keeps its runs' locks.
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
KEEP_ALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
POOL_SIZE, POOL_OVERFLOW = 5, 40
"""Size of the connection pool, and more connections on demand, for the threads of a web server."""
FIRST_STATEMENT = {"sqlite": "BEGIN IMMEDIATE", "postgresql": f"SELECT pg_advisory_xact_lock({LOCKS}, 0)"}
QUOTING = "odd characters of the password as %40 for @, %2F for /, %23 for #"
FORMS = "postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:////FOLDER/FILE"


@contextmanager
def transaction(connection: Connection) -> Iterator[Connection]:
    """A write transaction: it begins when the previous one is over."""
    with connection.begin():
        connection.exec_driver_sql(FIRST_STATEMENT[connection.dialect.name])
        yield connection


def sqlite_engine(path: Path | None) -> Engine:
    """Connections to a file, or the only connection to an in-memory database."""

    def connect() -> Any:
        # No isolation level: Python then begins no transactions itself. No thread check: threads share connections.
        opened = sqlite3.connect(
            path or ":memory:", timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            opened.execute("PRAGMA synchronous = FULL")
        except BaseException:
            opened.close()
            raise
        return opened

    dialect, compiled = _sqlite()
    pool: Pool = StaticPool(connect, dialect=dialect)
    if path is not None:
        pool = QueuePool(connect, dialect=dialect, pool_size=POOL_SIZE, max_overflow=POOL_OVERFLOW)
    return Engine(pool, dialect, make_url("sqlite://"), execution_options={"compiled_cache": compiled})


@cache
def _sqlite() -> tuple[Dialect, dict[Any, Any]]:
    """Shared by all SQLite databases of a process: in-memory ones are opened often, and would recompile each query."""
    engine = create_engine("sqlite://")
    engine.connect().close()  # asks SQLite for its version
    engine.dispose()
    return engine.dialect, {}


def postgres_engine(url: URL) -> Engine:
    """Connections to PostgreSQL; a dead one is replaced before it is used."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtra("PostgreSQL", "postgres") from None
    settings = " ".join(f"-c {name}={value}" for name, value in SERVER_SETTINGS.items())
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={"connect_timeout": 10, "application_name": "mlcd", "options": settings, **KEEP_ALIVE},
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
    )


def open_database(where: Path | str | None) -> Database:
    """Open a SQLite file or the URL of a database, and migrate its tables; None: in memory."""
    return Database(_url(where))


class Database:
    """SQLite in a file or in memory, or PostgreSQL; thread-safe. `url` has the password: messages use `name`."""

    def __init__(self, url: URL) -> None:
        self.dialect = url.get_backend_name()
        self.path = Path(url.database) if self.dialect == "sqlite" and url.database else None
        self.url = url.render_as_string(hide_password=False)
        self.name = _name(url)
        self._local = threading.local()
        self._closed = False
        # An in-memory database has one connection, for one thread at a time.
        alone = self.dialect == "sqlite" and self.path is None
        self._lock: AbstractContextManager[object] = threading.RLock() if alone else nullcontext()
        with translated_file_errors(self.name):
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with suppress(OSError):  # created here with mode 600; SQLite's own error is better
                    os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._engine = sqlite_engine(self.path) if self.dialect == "sqlite" else postgres_engine(url)
        weakref.finalize(self, self._engine.dispose)  # psycopg warns about unclosed connections
        # Reads need no transaction: each statement sees the committed state.
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
        """A connection for reading. Within a `write` of this thread it sees uncommitted changes."""
        current: Connection | None = getattr(self._local, "connection", None)
        if current is not None:
            yield current
            return
        self._check_open()
        with translated_errors(self.name), self._lock, self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: committed at the end, rolled back on an error. Nested ones are part of the outer one."""
        current: Connection | None = getattr(self._local, "connection", None)
        if current is not None:
            yield current
            return
        self._check_open()
        with translated_errors(self.name), self._lock, self._engine.connect() as connection, transaction(connection):
            self._local.connection = connection
            try:
                yield connection
            finally:
                self._local.connection = None

    def unpooled_connection(self) -> Connection:
        """A connection outside of the pool; the caller closes it."""
        self._check_open()
        with translated_errors(self.name):
            connection = self._engine.connect()
            connection.detach()
            return connection

    def close(self) -> None:
        """Close it: connections at once, that of an in-memory database when its user is done."""
        with self._lock:
            self._closed = True
            self._engine.dispose()

    def _check_open(self) -> None:
        if self._closed:  # SQLAlchemy would silently reconnect
            raise LedgerError("was closed", self.name)


def _url(where: Path | str | None) -> URL:
    """The URL of a database; error messages do not repeat it, since it may contain a password."""
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
    if not set("@/#? ").isdisjoint((url.host or "") + (url.database or "")):  # probably the end of an unquoted password
        raise UserError(f"the database's URL cannot be read: write {QUOTING}")
    return url.set(drivername="postgresql")


def _name(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or "the ledger in memory"
    # Without the query part, which may contain a secret.
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database).render_as_string()
