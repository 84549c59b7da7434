"""Drives one run in its own process: start or resume it, and see it through."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from mlcd.clouds.control import DIES_WITHIN_S
from mlcd.core import drive
from mlcd.core.backend import Purpose
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.errors import Interrupted, LedgerError, MlcdError, UserError, WrongState
from mlcd.core.ledger import Account, Ledger, Line, Resumed, Status, Stopped
from mlcd.core.runs.run import Run, Stop, resume, start
from mlcd.core.runs.run_machine import OVER, other_machine
from mlcd.core.units import format_duration
from mlcd.service.workers.heartbeat import DEADLINE, Heartbeat
from mlcd.service.workers.limits import Caps
from mlcd.service.workers.log import LOG
from mlcd.service.workers.log_copies import logs_copied
from mlcd.service.workers.progress_writer import ProgressWriter
from mlcd.service.workers.stop_requests import BY_THE_USER, StopRequests
from mlcd.service.workers.submissions import NEVER_BEGAN, asks_to_launch, from_json, waits
from mlcd.service.workers.trust import check_trusted


class AlreadyDriven(WrongState):
    """Another process drives the run, or has to."""


def see_through(
    run: str,
    ledger: Ledger,
    launch: bool = False,
    requests: StopRequests | None = None,
    heartbeat: Heartbeat | None = None,
    caps: Caps | None = None,
    *,
    wait_s: float = 0.0,
    stopped_stays: bool = False,
) -> None:
    """Drive the run from its current state until it ends or is told to stop.

    `wait_s`: how long to wait for another driver's lock. `stopped_stays`: do not resume what its user has stopped.

    A run that cannot start is refused in the ledger, one that cannot continue is stopped there, with the reason. Errors
    that may pass are raised: an unusable ledger, or a run that another process drives (`AlreadyDriven`).
    """
    requests, heartbeat = requests or StopRequests(run, ledger), heartbeat or Heartbeat()
    progress = ProgressWriter(ledger)
    with requests.listening(), _locked(run, ledger, wait_s), progress.writing(run), logs_copied(run, ledger):
        _check_machine(run, ledger, will_launch=True)
        try:
            requests.check()
            if stopped_stays and ledger.has_begun(run) and ledger.account(run).stopped:
                return
            _drive(run, ledger, launch, requests, progress, heartbeat, caps)
        except LedgerError:
            raise
        except Interrupted as interrupted:
            LOG.info("run '%s': %s", run, interrupted)
        except KeyboardInterrupt:
            _tear_down(run, ledger, None if requests.hands_over else requests.because)
        except WrongState as error:
            LOG.error("run '%s': %s", run, error)
        except MlcdError as error:
            LOG.error("run '%s': %s", run, error)
            _record_failure(run, ledger, str(error))
        if not requests.hands_over:
            ledger.request_action(run, None)  # carried out, or obsolete now


def take_down(run: str, ledger: Ledger, because: str = BY_THE_USER) -> None:
    """Tear down and settle what a run has left, when no process drives it any more; it can be resumed."""
    with _locked(run, ledger, DIES_WITHIN_S), ProgressWriter(ledger).writing(run), logs_copied(run, ledger):
        _check_machine(run, ledger, will_launch=False)
        _tear_down(run, ledger, because)
        ledger.request_action(run, None)


def _drive(
    run: str,
    ledger: Ledger,
    launch: bool,
    requests: StopRequests,
    progress: ProgressWriter,
    heartbeat: Heartbeat,
    caps: Caps | None,
) -> None:
    def on_entry(line: Line) -> None:
        progress.on_entry(line)
        heartbeat.on_entry(line)

    submission = ledger.submission(run)
    if submission is not None and not ledger.has_begun(run):
        if submission.refused is not None:
            return  # refused while it waited
        if requests.stop():
            if requests.by_user:
                ledger.refuse(run, NEVER_BEGAN)
            return
        job, launch_requested = from_json(submission.request)
        check_trusted(job)
        driven = start(job, ledger, on_entry, progress.report, run)
    else:
        driven = resume(run, ledger, on_entry, progress.report)
        launch_requested = _was_launched(driven.book.account) or asks_to_launch(run, ledger)
        if driven.book.account.status in OVER:
            return
        check_trusted(driven.job)
        if driven.book.account.stopped:
            driven.book.write(Resumed("a worker went on"))
    _bind_to_deadline(driven, heartbeat)
    stop = _capped(driven, requests, caps)
    try:
        driven.see_through(launch or launch_requested, lambda purpose: nullcontext(stop))
    finally:
        driven.cloud.close()


def _bind_to_deadline(driven: Run, heartbeat: Heartbeat) -> None:
    """Give the heartbeat the run's deadline, if its time is real."""
    deadline_s, clock = driven.job.goal.deadline_s, driven.book.clock
    if deadline_s is not None and isinstance(clock, WallClock):
        heartbeat.set_deadline(DEADLINE, deadline_s - clock.elapsed_s())


def _capped(driven: Run, requests: StopRequests, caps: Caps | None) -> Stop:
    """A function that tells whether to stop before the next step; `UserError` beyond the limits on computing."""
    began_s = time.monotonic()

    def stop() -> bool:
        if caps is not None and len(driven.book.account.history.measurements) >= caps.probes:
            raise UserError(f"it has made {caps.probes:,} probes, the most here: narrow its search and submit it again")
        if caps is not None and time.monotonic() - began_s >= caps.computing_s:
            most = format_duration(caps.computing_s)
            raise UserError(f"it has computed for {most}, the most at a time: narrow its search, or resume it")
        return requests.stop()

    return stop


def _was_launched(account: Account) -> bool:
    """Whether the decided job has run, or was about to when its process died.

    Launches before a change of limits do not count: under the new ones, the user has to agree again.
    """
    if account.decision is None:
        return False
    return bool(account.final_runs) or any(each.launch.purpose is Purpose.RUN for each in account.open)


def _tear_down(run: str, ledger: Ledger, because: str | None) -> None:
    """Tear down and settle everything of the run. Without a reason, another process will resume it."""
    if waits(run, ledger):
        if because == BY_THE_USER:
            ledger.refuse(run, NEVER_BEGAN)
        return
    try:
        remaining = resume(run, ledger)
        drive.reclaim(remaining.cloud.profiler, remaining.book)
    except LedgerError:
        raise
    except MlcdError as error:
        LOG.error("run '%s': not torn down: %s", run, error)
        _record_failure(run, ledger, f"not torn down: {error}")
        return
    if because is not None and remaining.book.account.status in (Status.SEARCHING, Status.RUNNING):
        remaining.book.write(Stopped(because))


def _record_failure(run: str, ledger: Ledger, because: str) -> None:
    """Record in the ledger why the run does not continue; open launches are settled when it is resumed."""
    if not ledger.has_begun(run):
        ledger.refuse(run, because)
        return
    account = ledger.account(run)
    if account.status not in OVER:
        ledger.book(run, VirtualClock(account.history.elapsed_s)).write(Stopped(because))


def _check_machine(run: str, ledger: Ledger, will_launch: bool) -> None:
    """Raise unless this machine has what the run needs."""
    if (host := other_machine(run, ledger, will_launch)) is not None:
        raise AlreadyDriven(f"its launches are kept on {host}; it waits for a worker there")


@contextmanager
def _locked(run: str, ledger: Ledger, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the run's lock, as soon as no other process does."""
    deadline_s = time.monotonic() + timeout_s
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(ledger.hold(run))
                break
            except WrongState as error:
                if time.monotonic() >= deadline_s:
                    raise AlreadyDriven(str(error)) from error
                time.sleep(0.05)
        yield
