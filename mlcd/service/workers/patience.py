"""Procrastinate's connection to PostgreSQL, with the patience to see a restart of the database through.

As it comes, a worker ends when one of its questions gets no answer, and waits with that for the runs it drives: for
hours it would take no other. Ours asks again until the database is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import psycopg
from procrastinate import PsycopgConnector, sql
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException

from mlcd.service.workers.log import LOG

ASKS_AGAIN_S = 0.5
T = TypeVar("T")
FETCH = sql.queries["fetch_job"].replace(
    "procrastinate_fetch_job_v2(%(queues)s::varchar[], %(worker_id)s)",
    "mlcd_fetch_job_v1(%(queues)s::varchar[], %(worker_id)s, %(at_once)s::int)",
)
assert "mlcd_fetch_job_v1" in FETCH, "Procrastinate fetches jobs in another way now: see fair_share.sql"


class PatientConnector(PsycopgConnector):
    """Asks again while the database is away. What was done although its answer got lost, the worker finds out."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._at_once = at_once
        self.patient = True
        """False once the worker is to end: then it need not hear the answer."""

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """Execute."""
        ask = super().execute_query_async
        await self._until_answered(lambda: ask(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        """Execute, for one row. The next job is chosen by us, so that every member has a fair share."""
        if query == sql.queries["fetch_job"]:
            query, arguments = FETCH, {**arguments, "at_once": self._at_once}
        ask = super().execute_query_one_async
        return await self._until_answered(lambda: ask(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        """Execute, for all rows."""
        ask = super().execute_query_all_async
        return await self._until_answered(lambda: ask(query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Hear of new jobs at once; those that come while the database is away are found by looking."""
        listen, names = super().listen_notify, list(channels)
        await self._until_answered(lambda: listen(on_notification=on_notification, channels=names))

    async def _until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        away = False
        while True:
            try:
                answer = await ask()
            except ConnectorException as error:
                if not self.patient or not isinstance(
                    error.__cause__, psycopg.OperationalError | psycopg.InterfaceError
                ):
                    raise
                if not away:
                    LOG.warning("the queue's database is away; waiting for it")
                away = True
                await asyncio.sleep(ASKS_AGAIN_S)
            else:
                return answer
