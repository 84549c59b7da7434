"""A worker: takes runs from the queue and drives each in its own process.

It writes a heartbeat. Other workers find the runs of a dead worker and resume them from the ledger: nothing is paid for
twice.
"""

import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mlcd.core.errors import LedgerError, MissingExtra
from mlcd.core.ledger import Ledger
from mlcd.service.workers.limits import CAPS, EXIT_TIMEOUT_S, TIMING, Caps, Timing
from mlcd.service.workers.log import LOG, to_stderr
from mlcd.service.workers.process import Child, Errand, Outcome, leave_with_parent, send, wait_for_result, warm_up
from mlcd.service.workers.roster import DRIVE, QUEUE, SWEEP, register_worker
from mlcd.service.workers.stop_requests import HAND_OVER
from mlcd.service.workers.trust import keep_memory_private

try:
    from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
    from procrastinate.exceptions import ConnectorException, UniqueViolation
    from procrastinate.jobs import Job as Queued
    from procrastinate.jobs import Status
    from procrastinate.worker import Worker
    from psycopg_pool import AsyncNullConnectionPool

    from mlcd.service.workers.queue_database import RetryingConnector, prepare
except ImportError:
    raise MissingExtra("a worker", "service") from None

MOST_DEATHS = 3  # of processes of one run, before it is left to its user: the cause would kill the next one, too
START_GAP_S = 0.1  # between two process starts: a hundred at once would exhaust the database's connections
MOST_DOUBLINGS = 4  # most doublings of the backoff before a retry: a run may wait for its machine for days
DELETE_AFTER_S = 3_600.0  # a worker without heartbeat leaves the list; late, since it could then take no more jobs
HURRY = signal.SIGUSR2  # end at once; a signal of its own, since two equal ones at the same moment are one


def work(url: str, at_once: int, timing: Timing = TIMING) -> None:
    """Take runs until SIGINT, SIGTERM, `HURRY`, or the end of the parent process."""
    to_stderr()
    keep_memory_private()
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # it logs about jobs; we log about runs
    ledger = Ledger(url)
    try:
        prepare(ledger.database)
        warm_up()
        leave_with_parent()
        asyncio.run(_Worker(ledger, at_once, timing).run_until_stopped())
    finally:
        ledger.close()


def cron(every_s: int) -> str:
    """A cron expression for every so many seconds: Procrastinate's sixth field."""
    return f"* * * * * */{every_s}"


class RetryLater(Exception):
    """Not done: a worker retries later."""


class _Worker:
    """One worker, and its active jobs."""

    def __init__(self, ledger: Ledger, at_once: int, timing: Timing) -> None:
        self._ledger, self._at_once, self._timing = ledger, at_once, timing
        self._active: set[int] = set()
        self._watchers = ThreadPoolExecutor(at_once, thread_name_prefix="watcher")
        self._start_lock = asyncio.Lock()
        self._hurry = asyncio.Event()  # set by a second request to end: do not wait for runs to finish their step

    async def run_until_stopped(self) -> None:
        """Work until a signal comes; then end the active runs and leave them to other workers."""
        connector = RetryingConnector(self._at_once)
        app = App(connector=connector)
        self._add_tasks(app)
        # A new connection for each query: there are few, and an idle connection could have died.
        async with AsyncNullConnectionPool(self._ledger.database.url, open=False, name="mlcd-worker") as pool:
            await app.open_async(pool)
            worker = Worker(
                app,
                queues=[QUEUE],
                concurrency=self._at_once,
                fetch_job_polling_interval=self._timing.poll_s,
                shutdown_graceful_timeout=0.0,
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self._timing.heartbeat_s,
                stalled_worker_timeout=DELETE_AFTER_S,
            )

            def stop_requested() -> None:
                if not connector.retrying:
                    self._hurry.set()
                connector.retrying = False
                worker.stop()  # type: ignore[no-untyped-call]

            def hurry() -> None:
                self._hurry.set()
                stop_requested()

            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop_requested)
            loop.add_signal_handler(HURRY, hurry)
            beside = [asyncio.create_task(each) for each in (self._find_lost(app, worker), self._sign_on(worker))]
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            finally:
                for each in beside:
                    each.cancel()

    async def _sign_on(self, worker: Worker) -> None:
        """Say in the database where this worker runs, once it has its number there."""
        while worker.worker_id is None:
            await asyncio.sleep(START_GAP_S)
        while True:
            with suppress(LedgerError):  # the database is away
                await asyncio.to_thread(register_worker, self._ledger.database, worker.worker_id, self._at_once)
                return
            await asyncio.sleep(self._timing.heartbeat_s)

    def _add_tasks(self, app: App) -> None:
        @app.task(name=DRIVE, queue=QUEUE, retry=Retry(self._timing.retry_s), pass_context=True)
        async def drive(context: JobContext, /, run: str, errand: str, **share: Any) -> None:
            known = {name: share[name] for name in ("probes", "computing_s") if name in share}
            await self._drive(context.job, run, Errand(errand), replace(CAPS, **known))

        @app.periodic(cron=cron(self._timing.sweep_s))
        @app.task(name=SWEEP, queue=QUEUE, queueing_lock=SWEEP)
        async def sweep(timestamp: int) -> None:
            await self._sweep(app)

    async def _drive(self, job: Queued, run: str, errand: Errand, caps: Caps) -> None:
        """Do one errand in its own process."""
        number = job.id or 0
        self._active.add(number)
        try:
            async with self._start_lock:
                await asyncio.sleep(START_GAP_S)
                child = await asyncio.to_thread(send, run, errand, self._ledger, True, caps=caps)
            outcome = await self._outcome(child)
        finally:
            self._active.discard(number)
        if outcome is Outcome.DIED and job.attempts + 1 >= MOST_DEATHS:
            LOG.error("run '%s': its process died again; continue it with: mlcd resume %s", run, run)
        elif outcome is Outcome.DIED:
            LOG.warning("run '%s': its process died; it is retried", run)
            raise RetryLater
        elif outcome is Outcome.AGAIN:  # the process has logged why
            raise RetryLater

    async def _outcome(self, child: Child) -> Outcome:
        """Wait for a process, and tear down after it if it had to be ended."""
        why = await self._wait_for_result(child)
        outcome = child.outcome()
        if why is None or child.errand is Errand.TAKE_DOWN:
            return outcome
        LOG.warning("run '%s': %s", child.run, why)
        teardown = await asyncio.to_thread(send, child.run, Errand.TAKE_DOWN, self._ledger, because=why)
        return await self._outcome(teardown)

    async def _wait_for_result(self, child: Child) -> str | None:
        """Wait for a process; if it hangs, end it and return the reason.

        If this worker has to end meanwhile, it asks the process to hand over its run, and to tear down if it cannot.
        """
        loop = asyncio.get_running_loop()
        ended = loop.run_in_executor(self._watchers, wait_for_result, child, self._ledger, self._timing)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if child.errand is not Errand.TAKE_DOWN:  # a teardown has nothing to hand over
                child.send_signal(HAND_OVER)
            hurry = asyncio.ensure_future(self._hurry.wait())
            await asyncio.wait((ended, hurry), timeout=self._timing.grace_s, return_when=asyncio.FIRST_COMPLETED)
            hurry.cancel()
            if not ended.done():
                child.send_signal(signal.SIGTERM)
                await asyncio.wait((ended,), timeout=EXIT_TIMEOUT_S)
                child.send_signal(signal.SIGKILL)
            raise

    async def _sweep(self, app: App) -> None:
        """Requeue the jobs of workers without heartbeat. A second check spares one that has just come back."""
        silent = await self._silent(app)
        if silent:
            await asyncio.sleep(self._timing.recheck_s)
            for number, job in (await self._silent(app)).items():
                if number in silent:
                    LOG.warning("the worker that had '%s' is gone; another one continues", job.lock or job.task_name)
                    await _requeue(app, job)

    async def _silent(self, app: App) -> dict[int, Queued]:
        jobs = await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=self._timing.silent_s)
        return {job.id or 0: job for job in jobs}

    async def _find_lost(self, app: App, worker: Worker) -> None:
        """Requeue jobs that the table assigns to this worker but it does not have: the reply to its query was lost."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(self._timing.silent_s)
            if worker.worker_id is None:
                continue
            jobs = await app.job_manager.list_jobs_async(queue=QUEUE, status="doing", worker_id=worker.worker_id)
            lost = {job.id or 0: job for job in jobs if job.task_name == DRIVE and job.id not in self._active}
            for number in lost.keys() & before:  # seen twice: a job that was just taken is about to start
                await _requeue(app, lost[number])
            before = lost.keys() - before


async def _requeue(app: App, job: Queued) -> None:
    """Put a job back into the queue; if the same errand is already there, delete this one."""
    with suppress(ConnectorException):  # the job ended meanwhile
        if job.task_name == DRIVE:
            try:
                await app.job_manager.retry_job(job)
                return
            except UniqueViolation:
                pass
        await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)


class Retry(BaseRetryStrategy):
    """Retry an errand that could not be done now, or whose worker ends."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s

    def get_retry_decision(self, *, exception: BaseException, job: Queued) -> RetryDecision | None:
        """When to retry; None: not at all."""
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if not isinstance(exception, RetryLater):
            return None
        factor = 2 ** min(job.attempts, MOST_DOUBLINGS)
        return RetryDecision(retry_in={"milliseconds": int(self._after_s * factor * 1000)})
