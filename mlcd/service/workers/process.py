"""A process for each run: forked from a server that has everything imported, and gone when its parent is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from mlcd.core.errors import LedgerFull, LedgerLocked, LedgerUnreachable, MlcdError
from mlcd.core.job import only_computed
from mlcd.core.ledger import Ledger
from mlcd.service.caps import Caps
from mlcd.service.workers.asked import from_json
from mlcd.service.workers.log import LOG, to_stderr
from mlcd.service.workers.pace import Pace
from mlcd.service.workers.pulse import COMPUTING, Pulse, Watch
from mlcd.service.workers.told import BY_THE_USER, Told, interrupt_main
from mlcd.service.workers.trust import keep_memory_private

PRELOADED = ["mlcd.service.workers.run", "mlcd.core.runs.run", "mlcd.planners.form", "mlcd.planners.serve.operators"]
PRELOADED += ["scipy.stats", "sklearn.gaussian_process", "sklearn.svm", "sklearn.cluster"]
"""The latter are imported by whoever needs them: once here, and not once in each process."""
PRELOADED += ["mlcd.service.workers.frozen"]
AUTOGROUP = Path("/proc/self/autogroup")
LEAVES_WITHIN_S = 30.0
"""What tearing down may take once a process is told to end."""


class Errand(StrEnum):
    """What a process is sent to do with a run."""

    SEE_THROUGH = "see through"
    LAUNCH = "see through, and launch"
    TAKE_DOWN = "take down"


class Outcome(StrEnum):
    """How that went."""

    DONE = "done"
    AGAIN = "again"  # the database is lost or full, or another process drives the run: later it may work
    FAILED = "failed"  # a mistake; the log has it
    DIED = "died"


def forkserver() -> ForkServerContext:
    """Where processes are forked from: a start takes some 10 ms, since everything is imported there already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def warm_up() -> None:
    """Start the fork server now, so that the first run need not wait for it."""
    from multiprocessing.forkserver import ensure_running

    forkserver()
    with _ctrl_c_unheard():
        ensure_running()


@contextmanager
def _ctrl_c_unheard() -> Iterator[None]:
    """What is started inside leaves Ctrl-C to us: it would be torn out of its imports, and complain of that."""
    if threading.current_thread() is not threading.main_thread():  # signals are for that one alone
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Child:
    """A process that was sent. What it says comes through a pipe: that ends, too, when the process is killed."""

    run: str
    errand: Errand
    process: ForkServerProcess
    says: Connection
    pulse: Pulse

    def outcome(self) -> Outcome:
        """Wait for its end."""
        try:
            return Outcome(self.says.recv())
        except (EOFError, OSError):
            self.process.join(LEAVES_WITHIN_S)  # its pipe is closed a moment before its lock
            return Outcome.DIED
        finally:
            self.says.close()

    def tell(self, number: signal.Signals) -> None:
        """Signal it: SIGINT asks it to stop, SIGTERM to tear down and end, SIGKILL needs no asking."""
        with suppress(ProcessLookupError):
            if self.process.pid is not None:
                os.kill(self.process.pid, number)


def send(
    run: str,
    errand: Errand,
    ledger: Ledger,
    queued: bool = False,
    because: str = BY_THE_USER,
    caps: Caps | None = None,
) -> Child:
    """A new process, on its way. `queued`: what it leaves, another goes on with. `because`: why it is taken down.

    `caps`: how much a run may compute that only computes.
    """
    context = forkserver()
    says, speaks = context.Pipe(duplex=False)
    pulse = Pulse()
    computes = only_computes(run, ledger)
    where = ledger.path or ledger.database.url
    sent = _Sent(run, errand, where, queued, computes, because, caps if computes else None)
    process = context.Process(target=_go, args=(sent, os.environ.get("MLCD_HOME"), speaks, pulse), daemon=False)
    process.start()
    speaks.close()
    return Child(run, errand, process, says, pulse)


def wish(child: Child, ledger: Ledger) -> str | None:
    """What the user of a run wants of the process that drives it; of one that takes it down, nothing more."""
    with suppress(MlcdError):  # a database that is away for a moment: the next look will tell
        return None if child.errand is Errand.TAKE_DOWN else ledger.wished(child.run)
    return None


def watched(child: Child, ledger: Ledger, pace: Pace) -> str | None:
    """Wait until a process has spoken, or is gone; why it was ended from outside, if it was."""
    watch = Watch(child.pulse, pace)
    while not child.says.poll(pace.watch_s):
        if (why := watch.why(wish(child, ledger))) is not None:
            child.tell(signal.SIGTERM)
            if not child.says.poll(pace.kill_s):
                child.tell(signal.SIGKILL)
            return why
    return None


def only_computes(run: str, ledger: Ledger) -> bool:
    """Whether nothing is rented or measured for it, as far as can be told."""
    with suppress(MlcdError):  # the process itself will say what is wrong
        asked = ledger.asked(run)
        return asked is not None and only_computed(from_json(asked.asked)[0].on)
    return False


def leave_with_parent() -> None:
    """End when the parent does, however it died: as if told to, and by force if that takes too long."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        interrupt_main()
        time.sleep(LEAVES_WITHIN_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class _Sent:
    """What a process is told when it starts; `where` the ledger is."""

    run: str
    errand: Errand
    where: Path | str
    queued: bool
    only_computes: bool
    because: str
    caps: Caps | None


def _go(sent: _Sent, home: str | None, speaks: Connection, pulse: Pulse) -> None:
    """What the process does."""
    from mlcd.service.workers.run import Driven

    run = sent.run
    pulse.start()
    os.setsid()  # a Ctrl-C in the terminal is for the parent, which knows what to do
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the fork server hears none
    if sent.only_computes:
        _step_back()
    if home is not None:  # that of the fork server may be another one
        os.environ["MLCD_HOME"] = home
    to_stderr(force=True)
    leave_with_parent()
    outcome = Outcome.FAILED
    try:
        outcome = _do(sent, pulse)
    except (LedgerUnreachable, LedgerLocked, LedgerFull, Driven) as error:
        LOG.warning("run '%s': %s", run, error)
        outcome = Outcome.AGAIN
    except MlcdError as error:
        LOG.error("run '%s': %s", run, error)
    except KeyboardInterrupt:  # in the moment between the end of the work and the end of the process
        outcome = Outcome.DONE
    except Exception:
        LOG.exception("run '%s': a bug in MLCD", run)
    with suppress(OSError):  # nobody listens any more
        speaks.send(outcome.value)


def _step_back() -> None:
    """Let those go first whom somebody waits for, such as the pages; at once, for hundreds may start together.

    Not where machines are real: a job on nodes of this machine would be as nice as its driver, and be measured so.
    """
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        keep_memory_private(False)
        with suppress(OSError):  # Linux may share the cores among sessions first, and this is a new one
            AUTOGROUP.write_text("19")
        keep_memory_private()


def _do(sent: _Sent, pulse: Pulse) -> Outcome:
    # Here, since whoever only sends processes need not have all this.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from mlcd.service.workers.run import see_through, take_down

    ledger = Ledger(sent.where)
    try:
        with threadpool_limits(1):  # the matrices are tiny, and the cores belong to other runs, too
            if sent.errand is Errand.TAKE_DOWN:
                take_down(sent.run, ledger, sent.because)
            else:
                told = Told(sent.run, ledger, queued=sent.queued)
                if sent.caps is not None:
                    pulse.end_within(COMPUTING, sent.caps.computing_s)
                see_through(sent.run, ledger, sent.errand is Errand.LAUNCH, told, pulse, sent.caps)
    finally:
        ledger.close()
    return Outcome.DONE
