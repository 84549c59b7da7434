"""Connections to SQLite and PostgreSQL, and how a write transaction begins on each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, make_url
from sqlalchemy.pool import Pool, QueuePool, StaticPool

from mlcd.core.errors import MissingExtra

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
