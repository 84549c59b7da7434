"""A team's executor: runs wait in PostgreSQL, in a Procrastinate queue, until a worker takes them.

This is the sending side; `mlcd.service.workers.worker` is the receiving one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mlcd.core.errors import LedgerUnreachable, MissingExtra, WrongState
from mlcd.core.ledger import Ledger
from mlcd.service.workers.limits import CAPS, TIMING, Caps
from mlcd.service.workers.process import Errand, only_computes
from mlcd.service.workers.roster import DRIVE, QUEUE, Roster, read_roster
from mlcd.service.workers.submissions import NEVER_BEGAN, refused, waits

if TYPE_CHECKING:
    from procrastinate.jobs import Job as Queued
    from procrastinate.types import JSONValue

CACHED_S = 1.0


class Queue:
    """Sends runs to the workers of a PostgreSQL database. A lock for each run allows one errand at a time."""

    def __init__(self, ledger: Ledger, caps: Caps = CAPS) -> None:
        try:
            import procrastinate
            from psycopg_pool import NullConnectionPool

            from mlcd.service.workers.queue_database import prepare
        except ImportError:
            raise MissingExtra("a queue of runs", "service") from None
        self._ledger, self._caps = ledger, caps
        self._alive, self._counted_at_s = 0, -math.inf
        prepare(ledger.database)
        # A new connection for each query: there are few, and an idle connection could have died.
        self._pool = NullConnectionPool(ledger.database.url, open=True, name="mlcd-queue")
        self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())
        self._app.open(self._pool)

    def send(self, run: str, launch: bool = False) -> None:
        """Put a run into the queue, to start or to resume it."""
        self._ledger.request_action(run, None)  # resuming overrides an earlier request to stop
        if not self._defer(run, Errand.LAUNCH if launch else Errand.DRIVE):
            raise WrongState(f"run '{run}' is waiting for a worker already")

    def stop(self, run: str) -> None:
        """Ask a run to stop: its worker polls once a second. One that waits is taken out of the queue."""
        withdrawn = self.withdraw(run)
        if self._ledger.is_driven(run) or self._queued(run, "doing"):
            self._ledger.request_action(run, "stop")
        elif not withdrawn:
            raise WrongState(f"run '{run}' is not driven by any worker; to free what it left behind: mlcd down {run}")

    def down(self, run: str) -> None:
        """End a run now; when no process drives it any more, a worker tears down what is left."""
        if self.withdraw(run) and refused(run, self._ledger):
            return
        self._ledger.request_action(run, "down")
        self._defer(run, Errand.TAKE_DOWN)

    def alive(self) -> int:
        """How many workers, on all machines, have a recent heartbeat; cached, since anybody can call /health often."""
        if time.monotonic() - self._counted_at_s > CACHED_S:
            query = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '{} s'"
            with self._ledger.database.read() as connection:
                self._alive = int(connection.exec_driver_sql(query.format(TIMING.silent_s)).scalar() or 0)
            self._counted_at_s = time.monotonic()
        return self._alive

    def roster(self) -> Roster:
        """The workers and what each drives, and what waits."""
        return read_roster(self._ledger.database)

    def close(self) -> None:
        """Close the connection; workers and queued runs go on."""
        self._pool.close()

    def adopt(self, older_than: timedelta = timedelta(0)) -> int:
        """Queue submissions that were stored but not queued, since the service or the database died between the two.

        `older_than`: leave younger ones, which their request may be about to queue. Returns the number queued.
        """
        before = datetime.now(UTC) - older_than
        waiting = [each for each in self._ledger.waiting() if each.refused is None and each.created_at <= before]
        return sum(self._defer(each.run, Errand.DRIVE) for each in waiting if not self._queued(each.run))

    def _defer(self, run: str, errand: Errand) -> bool:
        from procrastinate.exceptions import AlreadyEnqueued

        task = self._app.configure_task(DRIVE, queue=QUEUE, lock=run, queueing_lock=f"{errand} {run}")
        with _connection_errors():
            try:
                task.defer(run=run, errand=errand.value, **self._share(run))
            except AlreadyEnqueued:
                return False
        return True

    def _share(self, run: str) -> dict[str, JSONValue]:
        """The arguments that decide when a run's turn comes (fair_share.sql), and its limits."""
        submission, caps = self._ledger.submission(run), self._caps
        return {
            "member": submission.owner if submission is not None else None,
            "at_most": caps.running,
            "computes": only_computes(run, self._ledger),
            "probes": caps.probes,
            "computing_s": caps.computing_s,
        }

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue; True if therefore no process works on it."""
        with _connection_errors():
            cancel = self._app.job_manager.cancel_job_by_id
            cancelled = [cancel(job.id or 0, delete_job=True) for job in self._queued(run, "todo")]
        if waits(run, self._ledger) and not self._ledger.is_driven(run) and not self._queued(run, "doing"):
            self._ledger.refuse(run, NEVER_BEGAN)
            return True
        return any(cancelled)

    def _queued(self, run: str, status: str | None = None) -> list[Queued]:
        """The errands of a run that wait or are being worked on."""
        with _connection_errors():
            jobs = self._app.job_manager.list_jobs(queue=QUEUE, lock=run, status=status)
        return [job for job in jobs if job.status in ("todo", "doing")]


@contextmanager
def _connection_errors() -> Iterator[None]:
    from procrastinate.exceptions import ConnectorException

    try:
        yield
    except ConnectorException as error:
        raise LedgerUnreachable("the queue's database cannot be reached; try again when it is back") from error
