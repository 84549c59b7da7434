"""How SQLite and PostgreSQL are connected to, and how a transaction of a writer begins on each."""

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
"""How long a write of SQLite waits for another one."""
LOCKS = 0x6D6C6364
"""Marks MLCD's advisory locks in a PostgreSQL database: 0 is the writers', the others are of the run of that number."""
SERVER_SETTINGS = {
    "lock_timeout": "30s",
    # A writer that hangs holds up all others, and a machine that lost its network holds its runs: neither for long.
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
KEEP_ALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
KEPT, MORE = 5, 40
"""Connections that are kept, and those that come and go with as many threads as a web server has."""
FIRST_STATEMENT = {"sqlite": "BEGIN IMMEDIATE", "postgresql": f"SELECT pg_advisory_xact_lock({LOCKS}, 0)"}


@contextmanager
def transaction(connection: Connection) -> Iterator[Connection]:
    """A transaction of a writer: it begins when the one before it is over."""
    with connection.begin():
        connection.exec_driver_sql(FIRST_STATEMENT[connection.dialect.name])
        yield connection


def sqlite_engine(path: Path | None) -> Engine:
    """Connections to a file, or the one connection to a memory."""

    def connect() -> Any:
        # Without an isolation level, Python begins no transactions of its own; without a check, threads may share.
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
        pool = QueuePool(connect, dialect=dialect, pool_size=KEPT, max_overflow=MORE)
    return Engine(pool, dialect, make_url("sqlite://"), execution_options={"compiled_cache": compiled})


@cache
def _sqlite() -> tuple[Dialect, dict[Any, Any]]:
    """What all SQLite databases of a process share: many are opened, in memory, and each would compile all anew."""
    engine = create_engine("sqlite://")
    engine.connect().close()  # asks SQLite for its version
    engine.dispose()
    return engine.dialect, {}


def postgres_engine(url: URL) -> Engine:
    """Connections to PostgreSQL; one that died while it was idle is replaced before it is used."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtra("PostgreSQL", "postgres") from None
    settings = " ".join(f"-c {name}={value}" for name, value in SERVER_SETTINGS.items())
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={"connect_timeout": 10, "application_name": "mlcd", "options": settings, **KEEP_ALIVE},
        pool_pre_ping=True,
        pool_size=KEPT,
        max_overflow=MORE,
    )
