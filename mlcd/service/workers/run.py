"""One run, seen through in a process of its own: begin it or go on, search, launch if that was asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from mlcd.clouds.control import DIES_WITHIN_S
from mlcd.core import drive
from mlcd.core.backend import Purpose
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.errors import Interrupted, LedgerError, MlcdError, UserError, WrongState
from mlcd.core.ledger import Account, Ledger, Line, Resumed, Status, Stopped
from mlcd.core.runs.machine import elsewhere
from mlcd.core.runs.run import Run, resume, start
from mlcd.core.units import format_duration
from mlcd.planners.serve.nouns import ServingTask
from mlcd.service.caps import Caps
from mlcd.service.workers.asked import from_json
from mlcd.service.workers.crew import NEVER_BEGAN, waits
from mlcd.service.workers.log import LOG
from mlcd.service.workers.log_copies import logs_copied
from mlcd.service.workers.noted import Noted
from mlcd.service.workers.pulse import DEADLINE, Pulse
from mlcd.service.workers.told import BY_THE_USER, Told
from mlcd.service.workers.trust import check_trusted

Stop = Callable[[], bool]
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


class Driven(WrongState):
    """Another process drives the run, or is to."""


def see_through(
    run: str,
    ledger: Ledger,
    launch: bool = False,
    told: Told | None = None,
    pulse: Pulse | None = None,
    caps: Caps | None = None,
    *,
    wait_s: float = 0.0,
    stopped_stays: bool = False,
) -> None:
    """From wherever the run stands to its end, or to where it is told to stop.

    `wait_s`: how long to wait for whoever still drives it. `stopped_stays`: what its user has stopped is left alone.

    What cannot begin is refused in the ledger, and what cannot go on is stopped there, with the reason. A ledger that
    cannot be used, and a run that another process drives (`Driven`), are raised: that may be over in a moment.
    """
    told, noted, pulse = told or Told(run, ledger), Noted(ledger), pulse or Pulse()
    with told.listening(), _held(run, ledger, wait_s), noted.noting(run), logs_copied(run, ledger):
        _check_machine(run, ledger, going_on=True)
        try:
            told.look()
            if stopped_stays and ledger.has_begun(run) and ledger.account(run).stopped:
                return
            _drive(run, ledger, launch, told, noted, pulse, caps)
        except LedgerError:
            raise
        except Interrupted as interrupted:
            LOG.info("run '%s': %s", run, interrupted)
        except KeyboardInterrupt:
            _put_away(run, ledger, None if told.passes_on else told.because)
        except WrongState as error:
            LOG.error("run '%s': %s", run, error)
        except MlcdError as error:
            LOG.error("run '%s': %s", run, error)
            _give_up(run, ledger, str(error))
        if not told.passes_on:
            ledger.wish(run, None)  # followed, or without an object now


def take_down(run: str, ledger: Ledger, because: str = BY_THE_USER) -> None:
    """Tear down and settle what a run has left behind, once nobody drives it any more; it can be resumed."""
    with _held(run, ledger, DIES_WITHIN_S), Noted(ledger).noting(run), logs_copied(run, ledger):
        _check_machine(run, ledger, going_on=False)
        _put_away(run, ledger, because)
        ledger.wish(run, None)


def _drive(run: str, ledger: Ledger, launch: bool, told: Told, noted: Noted, pulse: Pulse, caps: Caps | None) -> None:
    def hear(line: Line) -> None:
        noted.hear(line)
        pulse.hear(line)

    asked = ledger.asked(run)
    if asked is not None and not ledger.has_begun(run):
        if asked.refused is not None:
            return  # while it waited
        if told.stop():
            if told.by_user:
                ledger.refuse(run, NEVER_BEGAN)
            return
        job, launch_asked = from_json(asked.asked)
        check_trusted(job)
        driven = start(job, ledger, hear, noted.report, run)
    else:
        driven = resume(run, ledger, hear, noted.report)
        launch_asked = _was_launched(driven.book.account) or (asked is not None and from_json(asked.asked)[1])
        if driven.book.account.status in OVER:
            return
        check_trusted(driven.job)
        if driven.book.account.stopped:
            driven.book.write(Resumed("a worker went on"))
    _bind_to_deadline(driven, pulse)
    try:
        _to_the_end(driven, launch or launch_asked, _capped(driven, told, caps))
    finally:
        driven.cloud.close()


def _bind_to_deadline(driven: Run, pulse: Pulse) -> None:
    """Say by when the run is over, where its time is real."""
    deadline_s, clock = driven.job.goal.deadline_s, driven.book.clock
    if deadline_s is not None and isinstance(clock, WallClock):
        pulse.end_within(DEADLINE, deadline_s - clock.elapsed_s())


def _capped(driven: Run, told: Told, caps: Caps | None, now: Callable[[], float] = time.monotonic) -> Stop:
    """Whether to stop before the next step; `UserError` where it has computed all that a run may."""
    began_s = now()

    def stop() -> bool:
        if caps is not None and len(driven.book.account.history.measurements) >= caps.probes:
            raise UserError(f"it has made {caps.probes:,} probes, the most here: narrow its search and submit it again")
        if caps is not None and now() - began_s >= caps.computing_s:
            most = format_duration(caps.computing_s)
            raise UserError(f"it has computed for {most}, the most at a time: narrow its search, or resume it")
        return told.stop()

    return stop


def _to_the_end(driven: Run, launch: bool, stop: Stop) -> None:
    decision = driven.search(stop)
    if launch and decision.configuration is not None and not isinstance(driven.job.ask, ServingTask) and not stop():
        driven.launch(stop)


def _was_launched(account: Account) -> bool:
    """Whether the job itself has run since it was decided where, or was about to when its process died.

    What ran under other limits says nothing: under the new ones, somebody has to agree again.
    """
    if account.decision is None:
        return False
    return bool(account.final_runs) or any(each.launch.purpose is Purpose.RUN for each in account.open)


def _put_away(run: str, ledger: Ledger, because: str | None) -> None:
    """Nothing of the run is left running, and the books are closed. Without a reason, another process goes on."""
    if waits(run, ledger):
        if because == BY_THE_USER:
            ledger.refuse(run, NEVER_BEGAN)
        return
    try:
        left = resume(run, ledger)
        drive.reclaim(left.cloud.profiler, left.book)
    except LedgerError:
        raise
    except MlcdError as error:
        LOG.error("run '%s': not torn down: %s", run, error)
        _give_up(run, ledger, f"not torn down: {error}")
        return
    if because is not None and left.book.account.status in (Status.SEARCHING, Status.RUNNING):
        left.book.write(Stopped(because))


def _give_up(run: str, ledger: Ledger, because: str) -> None:
    """Say in the ledger why nobody goes on; launches that are still open are settled when somebody does."""
    if not ledger.has_begun(run):
        ledger.refuse(run, because)
        return
    account = ledger.account(run)
    if account.status not in OVER:
        ledger.book(run, VirtualClock(account.history.elapsed_s)).write(Stopped(because))


def _check_machine(run: str, ledger: Ledger, going_on: bool) -> None:
    """Leave a run to the machine that has what it needs."""
    if (host := elsewhere(run, ledger, going_on)) is not None:
        raise Driven(f"its launches are kept on {host}; it waits for a worker there")


@contextmanager
def _held(run: str, ledger: Ledger, within_s: float = 0.0) -> Iterator[None]:
    """Be the one who drives the run, as soon as nobody else does."""
    until = time.monotonic() + within_s
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(ledger.hold(run))
                break
            except WrongState as error:
                if time.monotonic() >= until:
                    raise Driven(str(error)) from error
                time.sleep(0.05)
        yield
