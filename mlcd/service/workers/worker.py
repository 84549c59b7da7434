"""A worker: takes runs from the queue and sees each through in a process of its own.

It shows by its heartbeat that it lives. What a dead worker drove is found by the others, and taken over from the
ledger: nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlcd.core.errors import MissingExtra
from mlcd.core.ledger import Ledger
from mlcd.service.caps import CAPS, Caps
from mlcd.service.workers.log import LOG, to_stderr
from mlcd.service.workers.pace import PACE, Pace
from mlcd.service.workers.process import (
    LEAVES_WITHIN_S,
    Child,
    Errand,
    Outcome,
    leave_with_parent,
    send,
    warm_up,
    wish,
)
from mlcd.service.workers.pulse import Watch
from mlcd.service.workers.queue import DRIVE, QUEUE, SWEEP
from mlcd.service.workers.queue_tables import prepare
from mlcd.service.workers.told import LEAVE
from mlcd.service.workers.trust import keep_memory_private

if TYPE_CHECKING:
    from procrastinate import App, JobContext
    from procrastinate.jobs import Job as Queued
    from procrastinate.worker import Worker

MOST_DEATHS = 3
"""Of processes of one run, before it is left to its user: what kills one will kill the next."""
APART_S = 0.1
"""Between two processes: each opens connections, and a hundred at once would leave the database to nobody else."""
MOST_DOUBLINGS = 4
"""Of the pause before an errand is tried again: what waits for a machine may wait for days."""
FORGOTTEN_S = 3_600.0
"""After which a silent worker is struck off the list. Not soon: one that comes back could take no job any more."""


HURRY = signal.SIGUSR2
"""End, and wait for nothing. Not the first signal sent again: of two that come in one moment, only one is heard."""


def work(url: str, at_once: int, pace: Pace = PACE) -> None:
    """Take runs until told to end: by SIGINT, SIGTERM, `HURRY`, or the end of the parent that started it."""
    try:
        import procrastinate  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError:
        raise MissingExtra("a worker", "service") from None
    to_stderr()
    keep_memory_private()
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # its stories are of jobs; ours are of runs
    ledger = Ledger(url)
    try:
        prepare(ledger.database)
        warm_up()
        leave_with_parent()
        asyncio.run(_Working(ledger, at_once, pace).until_told())
    finally:
        ledger.close()


def sweeps(every_s: int) -> str:
    """So often, as Procrastinate is told: the sixth word is of the seconds."""
    return f"* * * * * */{every_s}"


class Again(Exception):
    """Not over: some worker is to try later."""


class _Working:
    """One worker, and what it has under way."""

    def __init__(self, ledger: Ledger, at_once: int, pace: Pace) -> None:
        self._ledger, self._at_once, self._pace = ledger, at_once, pace
        self._under_way: set[int] = set()
        self._door = asyncio.Lock()
        self._now = asyncio.Event()
        """Told to end again: whoever waits for others to come to a good end waits no longer."""

    async def until_told(self) -> None:
        """Work until a signal comes; then end what is under way, and leave it to others."""
        import procrastinate
        from procrastinate.worker import Worker
        from psycopg_pool import AsyncNullConnectionPool

        from mlcd.service.workers.patience import PatientConnector

        connector = PatientConnector(self._at_once)
        app = procrastinate.App(connector=connector)
        self._add_tasks(app)
        # A connection for each question: they are few, and none can have died while it was idle.
        async with AsyncNullConnectionPool(self._ledger.database.url, open=False, name="mlcd-worker") as pool:
            await app.open_async(pool)
            worker = Worker(
                app,
                queues=[QUEUE],
                concurrency=self._at_once,
                fetch_job_polling_interval=self._pace.poll_s,
                shutdown_graceful_timeout=0.0,
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self._pace.heartbeat_s,
                stalled_worker_timeout=FORGOTTEN_S,
            )

            def told() -> None:
                if not connector.patient:
                    self._now.set()
                connector.patient = False
                worker.stop()  # type: ignore[no-untyped-call]

            def hurried() -> None:
                self._now.set()
                told()

            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, told)
            loop.add_signal_handler(HURRY, hurried)
            finding = asyncio.create_task(self._find_lost(app, worker))
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            finally:
                finding.cancel()

    def _add_tasks(self, app: App) -> None:
        @app.task(name=DRIVE, queue=QUEUE, retry=_retry(self._pace.again_s), pass_context=True)
        async def drive(context: JobContext, /, run: str, errand: str, **share: Any) -> None:
            known = {name: share[name] for name in ("probes", "computing_s") if name in share}
            await self._drive(context.job, run, Errand(errand), replace(CAPS, **known))

        @app.periodic(cron=sweeps(self._pace.sweep_s))
        @app.task(name=SWEEP, queue=QUEUE, queueing_lock=SWEEP)
        async def sweep(timestamp: int) -> None:
            await self._sweep(app)

    async def _drive(self, job: Queued, run: str, errand: Errand, caps: Caps) -> None:
        """One errand, in a process of its own."""
        number = job.id or 0
        self._under_way.add(number)
        try:
            async with self._door:
                await asyncio.sleep(APART_S)
                child = await asyncio.to_thread(send, run, errand, self._ledger, True, caps=caps)
            outcome = await self._outcome(child)
        finally:
            self._under_way.discard(number)
        if outcome is Outcome.DIED and job.attempts + 1 >= MOST_DEATHS:
            LOG.error("run '%s': its process died, and not for the first time; go on with: mlcd resume %s", run, run)
        elif outcome is Outcome.DIED:
            LOG.warning("run '%s': its process died; it is tried again", run)
            raise Again
        elif outcome is Outcome.AGAIN:  # it has said why
            raise Again

    async def _outcome(self, child: Child) -> Outcome:
        """Wait for a process, and clean up after it if it had to be ended from outside."""
        why = await self._watched(child)
        outcome = child.outcome()
        if why is None or child.errand is Errand.TAKE_DOWN:
            return outcome
        LOG.warning("run '%s': %s", child.run, why)
        return await self._outcome(
            await asyncio.to_thread(send, child.run, Errand.TAKE_DOWN, self._ledger, because=why)
        )

    async def _watched(self, child: Child) -> str | None:
        """Why a process was ended from outside, if it was.

        If this worker is to end meanwhile, it has the process leave its run, and tear down if it cannot.
        """
        watch = Watch(child.pulse, self._pace)
        try:
            while not await _ended(child, self._pace.watch_s):
                if (why := watch.why(await asyncio.to_thread(wish, child, self._ledger))) is not None:
                    child.tell(signal.SIGTERM)
                    if not await _ended(child, self._pace.kill_s):
                        child.tell(signal.SIGKILL)
                    return why
            return None
        except asyncio.CancelledError:
            if child.errand is not Errand.TAKE_DOWN:  # that one leaves nothing to be gone on with
                child.tell(LEAVE)
            waiting = [asyncio.create_task(each) for each in (_ended(child, None), self._now.wait())]
            done, _ = await asyncio.wait(waiting, timeout=self._pace.grace_s, return_when=asyncio.FIRST_COMPLETED)
            if waiting[0] not in done:
                child.tell(signal.SIGTERM)
                await asyncio.wait(waiting[:1], timeout=LEAVES_WITHIN_S)
                child.tell(signal.SIGKILL)
            for each in waiting:
                each.cancel()
            raise

    async def _sweep(self, app: App) -> None:
        """Put back what silent workers had taken. Who comes back in this moment is given the time to say so."""
        silent = await self._silent(app)
        if silent:
            await asyncio.sleep(self._pace.doubt_s)
            for number, job in (await self._silent(app)).items():
                if number in silent:
                    LOG.warning("the worker that had '%s' is gone; another one goes on", job.lock or job.task_name)
                    await _put_back(app, job)

    async def _silent(self, app: App) -> dict[int, Queued]:
        jobs = await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self._pace.silent_s)
        return {job.id or 0: job for job in jobs}

    async def _find_lost(self, app: App, worker: Worker) -> None:
        """Put back jobs that are ours by the table and not by us: the answer that gave them to us was lost."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(self._pace.silent_s)
            if worker.worker_id is None:
                continue
            jobs = await app.job_manager.list_jobs_async(queue=QUEUE, status="doing", worker_id=worker.worker_id)
            lost = {job.id or 0: job for job in jobs if job.task_name == DRIVE and job.id not in self._under_way}
            for number in lost.keys() & before:  # twice: one that was just taken is about to begin
                await _put_back(app, lost[number])
            before = lost.keys() - before


async def _ended(child: Child, within_s: float | None) -> bool:
    """Whether it has spoken, or is gone, within so many seconds."""
    loop = asyncio.get_running_loop()
    spoken = asyncio.Event()
    loop.add_reader(child.says.fileno(), spoken.set)
    try:
        await asyncio.wait_for(spoken.wait(), within_s)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(child.says.fileno())
    return True


async def _put_back(app: App, job: Queued) -> None:
    """Into the queue again; if the same errand waits there already, that one will do."""
    from procrastinate.exceptions import ConnectorException, UniqueViolation
    from procrastinate.jobs import Status

    with suppress(ConnectorException):  # over meanwhile
        if job.task_name == DRIVE:
            try:
                await app.job_manager.retry_job(job)
                return
            except UniqueViolation:
                pass
        await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)


def _retry(after_s: float) -> Any:
    from procrastinate import BaseRetryStrategy, RetryDecision

    class Retry(BaseRetryStrategy):
        """An errand that could not be done now, and one whose worker ends, is for somebody else."""

        def get_retry_decision(self, *, exception: BaseException, job: Queued) -> RetryDecision | None:
            if isinstance(exception, asyncio.CancelledError):
                return RetryDecision(retry_in={"seconds": 0})
            if not isinstance(exception, Again):
                return None
            longer = 2 ** min(job.attempts, MOST_DOUBLINGS)
            return RetryDecision(retry_in={"milliseconds": int(after_s * longer * 1000)})

    return Retry()
