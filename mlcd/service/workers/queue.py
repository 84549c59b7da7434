"""A team's crew: runs wait in PostgreSQL, in a queue of Procrastinate's, until a worker takes them.

Here is the side that sends; `mlcd.service.workers.worker` is the one that takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlcd.core.errors import LedgerUnreachable, MissingExtra, WrongState
from mlcd.core.ledger import Ledger
from mlcd.service.caps import CAPS, Caps
from mlcd.service.workers.crew import NEVER_BEGAN, refused, waits
from mlcd.service.workers.pace import PACE
from mlcd.service.workers.process import Errand, only_computes
from mlcd.service.workers.queue_tables import prepare

if TYPE_CHECKING:
    from procrastinate.jobs import Job as Queued
    from procrastinate.types import JSONValue

QUEUE, DRIVE, SWEEP = "mlcd", "mlcd.core.drive", "mlcd.sweep"


class Queue:
    """Sends runs to the workers of a PostgreSQL database. One errand for a run at a time: they share a lock."""

    def __init__(self, ledger: Ledger, caps: Caps = CAPS) -> None:
        try:
            import procrastinate
            from psycopg_pool import NullConnectionPool
        except ImportError:
            raise MissingExtra("a queue of runs", "service") from None
        self._ledger, self._caps = ledger, caps
        prepare(ledger.database)
        # A connection for each question: they are few, and none can have died while it was idle.
        self._pool = NullConnectionPool(ledger.database.url, open=True, name="mlcd-queue")
        self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())
        self._app.open(self._pool)

    def send(self, run: str, launch: bool = False) -> None:
        """Put a run into the queue: to begin, or to go on."""
        self._ledger.wish(run, None)  # whoever goes on has forgotten what was wished for before
        if not self._defer(run, Errand.LAUNCH if launch else Errand.SEE_THROUGH):
            raise WrongState(f"run '{run}' is waiting for a worker already")

    def stop(self, run: str) -> None:
        """Ask a run to stop: its worker looks once a second. One that waits leaves the queue."""
        withdrawn = self.withdraw(run)
        if self._ledger.is_driven(run) or self._queued(run, "doing"):
            self._ledger.wish(run, "stop")
        elif not withdrawn:
            raise WrongState(f"run '{run}' is not driven by any worker; to free what it left behind: mlcd down {run}")

    def down(self, run: str) -> None:
        """End a run now; when nobody drives it any more, a worker tears down what is left."""
        if self.withdraw(run) and refused(run, self._ledger):
            return
        self._ledger.wish(run, "down")
        self._defer(run, Errand.TAKE_DOWN)

    def alive(self) -> int:
        """How many workers have shown a sign of life lately, on all machines."""
        with self._ledger.database.read() as connection:
            question = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '{} s'"
            return int(connection.exec_driver_sql(question.format(PACE.silent_s)).scalar() or 0)

    def close(self) -> None:
        """Send nobody any more; workers and what waits go on."""
        self._pool.close()

    def adopt(self) -> int:
        """Queue whatever was asked for when a service died before it could; how many there were."""
        lost = [each.run for each in self._ledger.waiting() if each.refused is None and not self._queued(each.run)]
        return sum(self._defer(run, Errand.SEE_THROUGH) for run in lost)

    def _defer(self, run: str, errand: Errand) -> bool:
        from procrastinate.exceptions import AlreadyEnqueued

        task = self._app.configure_task(DRIVE, queue=QUEUE, lock=run, queueing_lock=f"{errand} {run}")
        with _reached():
            try:
                task.defer(run=run, errand=errand.value, **self._share(run))
            except AlreadyEnqueued:
                return False
        return True

    def _share(self, run: str) -> dict[str, JSONValue]:
        """What decides when a run's turn comes (fair_share.sql), and how much it may compute."""
        asked, caps = self._ledger.asked(run), self._caps
        return {
            "member": asked.owner if asked is not None else None,
            "at_most": caps.running,
            "computes": only_computes(run, self._ledger),
            "probes": caps.probes,
            "computing_s": caps.computing_s,
        }

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue; True if that, or its refusal, leaves nobody to tell."""
        with _reached():
            cancel = self._app.job_manager.cancel_job_by_id
            gone = [cancel(job.id or 0, delete_job=True) for job in self._queued(run, "todo")]
        if waits(run, self._ledger) and not self._ledger.is_driven(run) and not self._queued(run, "doing"):
            self._ledger.refuse(run, NEVER_BEGAN)
            return True
        return any(gone)

    def _queued(self, run: str, status: str | None = None) -> list[Queued]:
        """The errands for a run that wait or are under way."""
        with _reached():
            jobs = self._app.job_manager.list_jobs(queue=QUEUE, lock=run, status=status)
        return [job for job in jobs if job.status in ("todo", "doing")]


@contextmanager
def _reached() -> Iterator[None]:
    from procrastinate.exceptions import ConnectorException

    try:
        yield
    except ConnectorException as error:
        raise LedgerUnreachable("the queue's database cannot be reached; try again when it is back") from error
