"""Procrastinate, the queue, in our database: its tables, our query of the next job, and retries while it restarts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from procrastinate import PsycopgConnector, sql
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection

from mlcd.core.database import Database
from mlcd.core.database.engine import LOCKS
from mlcd.service.workers.log import LOG

NEWEST = "COMMENT ON TABLE procrastinate_jobs IS '{}'"
"""Procrastinate does not record its latest migration: we do, as a comment on its table of jobs."""
FAIR_SHARE = files("mlcd.service.workers").joinpath("fair_share.sql")  # our own query that selects the next job
RETRY_S = 0.5
T = TypeVar("T")
FETCH = sql.queries["fetch_job"].replace(
    "procrastinate_fetch_job_v2(%(queues)s::varchar[], %(worker_id)s)",
    "mlcd_fetch_job_v1(%(queues)s::varchar[], %(worker_id)s, %(at_once)s::int)",
)
assert "mlcd_fetch_job_v1" in FETCH, "Procrastinate fetches jobs in another way now: see fair_share.sql"


def prepare(database: Database) -> None:
    """Create the tables at the first start, or apply newer migrations of Procrastinate."""
    migrations = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    with database.write() as connection:  # a lock: several services may start at once
        if connection.exec_driver_sql("SELECT to_regclass('procrastinate_jobs')").scalar() is None:
            _execute(connection, SchemaManager.get_schema())
        else:
            version = connection.exec_driver_sql("SELECT obj_description('procrastinate_jobs'::regclass)").scalar()
            for migration in migrations:
                if version is not None and migration.name > version:
                    _execute(connection, migration.read_text(encoding="utf-8"))
        _execute(connection, NEWEST.format(migrations[-1].name))
        _execute(connection, FAIR_SHARE.read_text(encoding="utf-8").format(locks=LOCKS))


def _execute(connection: Connection, script: str) -> None:
    """Run several statements at once, which psycopg allows only without parameters."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(script)


class RetryingConnector(PsycopgConnector):
    """Retries queries while the database is unreachable. A query whose reply was lost may run twice; workers check.

    Without retries a worker stops when one query fails, but waits for its active runs first: for hours it would take no
    new one.
    """

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._at_once = at_once
        self.retrying = True  # False when the worker is to end: then a failed query is not retried

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """Execute."""
        query_once = super().execute_query_async
        await self._with_retries(lambda: query_once(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        """Execute, for one row. Our own query selects the next job, so that every member gets a fair share."""
        if query == sql.queries["fetch_job"]:
            query, arguments = FETCH, {**arguments, "at_once": self._at_once}
        query_once = super().execute_query_one_async
        return await self._with_retries(lambda: query_once(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        """Execute, for all rows."""
        query_once = super().execute_query_all_async
        return await self._with_retries(lambda: query_once(query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Get notified of new jobs; those of a database outage are found by polling."""
        listen, names = super().listen_notify, list(channels)
        await self._with_retries(lambda: listen(on_notification=on_notification, channels=names))

    async def _with_retries(self, query_once: Callable[[], Awaitable[T]]) -> T:
        warned = False
        while True:
            try:
                return await query_once()
            except ConnectorException as error:
                unreachable = isinstance(error.__cause__, psycopg.OperationalError | psycopg.InterfaceError)
                if not self.retrying or not unreachable:
                    raise
                if not warned:
                    LOG.warning("the queue's database is unreachable; retrying")
                warned = True
                await asyncio.sleep(RETRY_S)
