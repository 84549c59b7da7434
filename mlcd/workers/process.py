"""A process for each run: forked from a server that has everything imported, and gone when its parent is gone."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from mlcd.errors import LedgerLocked, LedgerUnreachable, MlcdError
from mlcd.ledger import Ledger
from mlcd.workers.crew import LOG
from mlcd.workers.told import interrupt_main

PRELOADED = ["mlcd.workers.run", "mlcd.assemble", "mlcd.asked", "mlcd.operators"]
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
    AGAIN = "again"  # the database was lost, or another process drives the run: later it may work
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
    ensure_running()


@dataclass(frozen=True)
class Child:
    """A process that was sent. What it says comes through a pipe: that ends, too, when the process is killed."""

    run: str
    errand: Errand
    process: ForkServerProcess
    says: Connection

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


def send(run: str, errand: Errand, ledger: Ledger) -> Child:
    """A new process, on its way."""
    context = forkserver()
    says, speaks = context.Pipe(duplex=False)
    where = ledger.path or ledger.database.url
    process = context.Process(target=_go, args=(run, errand, where, os.environ.get("MLCD_HOME"), speaks), daemon=False)
    process.start()
    speaks.close()
    return Child(run, errand, process, says)


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


def _go(run: str, errand: Errand, where: Path | str, home: str | None, speaks: Connection) -> None:
    """What the process does."""
    from mlcd.workers.run import Driven

    os.setsid()  # a Ctrl-C in the terminal is for the parent, which knows what to do
    if home is not None:  # that of the fork server may be another one
        os.environ["MLCD_HOME"] = home
    logging.basicConfig(format="mlcd: %(message)s", level=logging.WARNING, stream=sys.stderr, force=True)
    leave_with_parent()
    outcome = Outcome.FAILED
    try:
        outcome = _do(run, errand, where)
    except (LedgerUnreachable, LedgerLocked, Driven) as error:
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


def _do(run: str, errand: Errand, where: Path | str) -> Outcome:
    # Here, since whoever only sends processes need not have all this.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from mlcd.workers.run import see_through, take_down

    ledger = Ledger(where)
    try:
        with threadpool_limits(1):  # the matrices are tiny, and the cores belong to other runs, too
            if errand is Errand.TAKE_DOWN:
                take_down(run, ledger)
            else:
                see_through(run, ledger, launch=errand is Errand.LAUNCH)
    finally:
        ledger.close()
    return Outcome.DONE
