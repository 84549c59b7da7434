"""A process for each run: forked from a server that has everything imported; it ends with its parent."""

import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path

from mlcd.core.errors import LedgerFull, LedgerLocked, LedgerUnreachable, MlcdError
from mlcd.core.job import only_computed
from mlcd.core.ledger import Ledger
from mlcd.core.planner import built_in_names
from mlcd.service.workers.heartbeat import COMPUTING, HangDetector, Heartbeat
from mlcd.service.workers.limits import EXIT_TIMEOUT_S, Caps, Timing
from mlcd.service.workers.log import LOG, to_stderr
from mlcd.service.workers.stop_requests import BY_THE_USER, StopRequests, interrupt_main
from mlcd.service.workers.submissions import from_json
from mlcd.service.workers.trust import keep_memory_private

PRELOADED = ["mlcd.service.workers.run", "mlcd.core.runs.run", "mlcd.planners.form.jobs", "scipy.stats"]
PRELOADED += [f"mlcd.planners.{name}.planner" for name in built_in_names()]
PRELOADED += ["mlcd.planners.train.net_value", "mlcd.planners.train.completion"]
PRELOADED += [f"mlcd.clouds.places.{name}" for name in ("simulated", "recorded", "functions")]
"""These are imported lazily elsewhere: preloaded here once, instead of in each process."""
PRELOADED += ["mlcd.service.workers.freeze_objects"]
AUTOGROUP = Path("/proc/self/autogroup")
LOWER_PRIORITY = "MLCD_STEP_BACK"  # set to 0 where runs that only compute need not yield to others


class Errand(StrEnum):
    """The task of a process: drive a run, drive it and launch its decision, or take it down."""

    DRIVE = "see through"
    LAUNCH = "see through, and launch"
    TAKE_DOWN = "take down"


class Outcome(StrEnum):
    """How it went."""

    DONE = "done"
    AGAIN = "again"  # the database is unreachable or full, or another process drives the run: retry later
    FAILED = "failed"  # an error, which is in the log
    DIED = "died"


def forkserver() -> ForkServerContext:
    """The context to fork processes from: a start takes about 10 ms, since everything is already imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def warm_up() -> None:
    """Start the fork server now, so that the first run does not wait for it."""
    forkserver()
    if threading.current_thread() is not threading.main_thread():  # only the main thread can set signal handlers
        ensure_running()
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C would interrupt its imports with a stack trace
    try:
        ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Child:
    """A started process. Its result comes through a pipe, which also closes when the process is killed."""

    run: str
    errand: Errand
    process: ForkServerProcess
    result: Connection
    heartbeat: Heartbeat
    since: datetime = field(default_factory=lambda: datetime.now(UTC))

    def outcome(self) -> Outcome:
        """Wait for its result."""
        try:
            return Outcome(self.result.recv())
        except (EOFError, OSError):
            self.process.join(EXIT_TIMEOUT_S)  # its pipe closes a moment before its lock is released
            return Outcome.DIED
        finally:
            self.result.close()

    def send_signal(self, number: signal.Signals) -> None:
        """SIGINT: stop after the current step. SIGTERM: tear down and end. SIGKILL: at once."""
        with suppress(ProcessLookupError):
            if self.process.pid is not None:
                os.kill(self.process.pid, number)


def send(
    run: str, errand: Errand, ledger: Ledger, queued: bool = False, because: str = BY_THE_USER, caps: Caps | None = None
) -> Child:
    """Start a process. `queued`: another one will continue what it leaves. `because`: the reason of a teardown."""
    context = forkserver()
    result, sender = context.Pipe(duplex=False)
    heartbeat = Heartbeat()
    computes, where = only_computes(run, ledger), ledger.path or ledger.database.url
    yields = computes and os.environ.get(LOWER_PRIORITY) != "0"
    arguments = _Arguments(run, errand, where, queued, yields, because, caps if computes else None)
    everything = (arguments, os.environ.get("MLCD_HOME"), sender, heartbeat)
    process = context.Process(target=_main, args=everything, daemon=False)
    process.start()
    sender.close()
    return Child(run, errand, process, result, heartbeat)


def wait_for_result(child: Child, ledger: Ledger, timing: Timing) -> str | None:
    """Wait until a process has a result or is gone. If it hangs, end it and return the reason."""
    detector = HangDetector(child.heartbeat, timing)
    while not child.result.poll(timing.watch_s):
        request = None  # what the user wants of the process that drives the run
        with suppress(MlcdError):  # unreachable for a moment: the next check will show it
            request = None if child.errand is Errand.TAKE_DOWN else ledger.requested_action(child.run)
        if (why := detector.reason_to_end(request)) is not None:
            child.send_signal(signal.SIGTERM)
            if not child.result.poll(timing.kill_s):
                child.send_signal(signal.SIGKILL)
            return why
    return None


def only_computes(run: str, ledger: Ledger) -> bool:
    """Whether the run rents and measures nothing (simulated or recorded), as far as is known."""
    with suppress(MlcdError):  # the process itself will report what is wrong
        submission = ledger.submission(run)
        return submission is not None and only_computed(from_json(submission.request)[0].on)
    return False


def leave_with_parent() -> None:
    """End when the parent ends in any way: first as by SIGTERM, after a timeout by force."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        interrupt_main()
        time.sleep(EXIT_TIMEOUT_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a process. `where`: path or URL of the ledger."""

    run: str
    errand: Errand
    where: Path | str
    queued: bool
    yields: bool
    because: str
    caps: Caps | None


def _main(arguments: _Arguments, home: str | None, sender: Connection, heartbeat: Heartbeat) -> None:
    """The main function of the process."""
    from mlcd.service.workers.run import AlreadyDriven

    run = arguments.run
    heartbeat.start()
    os.setsid()  # a Ctrl-C in the terminal goes to the parent only
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the fork server ignores it
    if arguments.yields:
        _lower_priority()
    if home is not None:  # the fork server's may differ
        os.environ["MLCD_HOME"] = home
    to_stderr(force=True)
    leave_with_parent()
    outcome = Outcome.FAILED
    try:
        outcome = _work(arguments, heartbeat)
    except (LedgerUnreachable, LedgerLocked, LedgerFull, AlreadyDriven) as error:
        LOG.warning("run '%s': %s", run, error)
        outcome = Outcome.AGAIN
    except MlcdError as error:
        LOG.error("run '%s': %s", run, error)
    except KeyboardInterrupt:  # between the end of the work and the end of the process
        outcome = Outcome.DONE
    except Exception:
        LOG.exception("run '%s': a bug in MLCD", run)
    with suppress(OSError):  # the parent is gone
        sender.send(outcome.value)


def _lower_priority() -> None:
    """Lower the priority, so that interactive processes such as the pages go first: hundreds of runs may start.

    Not for local nodes: a job there inherits the priority of its driver, which would distort its measurement.
    """
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        keep_memory_private(False)
        with suppress(OSError):  # Linux schedules per session (autogroup), and this is a new session
            AUTOGROUP.write_text("19")
        keep_memory_private()


def _work(arguments: _Arguments, heartbeat: Heartbeat) -> Outcome:
    # Imported here: a process that only starts others does not need this.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from mlcd.service.workers.run import see_through, take_down

    ledger = Ledger(arguments.where)
    try:
        with threadpool_limits(1):  # the matrices are tiny, and other runs need the cores
            if arguments.errand is Errand.TAKE_DOWN:
                take_down(arguments.run, ledger, arguments.because)
            else:
                requests = StopRequests(arguments.run, ledger, queued=arguments.queued)
                if arguments.caps is not None:
                    heartbeat.set_deadline(COMPUTING, arguments.caps.computing_s)
                launch = arguments.errand is Errand.LAUNCH
                see_through(arguments.run, ledger, launch, requests, heartbeat, arguments.caps)
    finally:
        ledger.close()
    return Outcome.DONE
