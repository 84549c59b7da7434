"""The interface of executors, which drive runs in other processes; and that of `mlcd ui`, with child processes."""

import os
import platform
import signal
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mlcd.clouds import control
from mlcd.core.errors import MlcdError, WrongState
from mlcd.core.ledger import Ledger
from mlcd.core.version import VERSION
from mlcd.service.workers.limits import EXIT_TIMEOUT_S, TIMING, Timing
from mlcd.service.workers.log import LOG
from mlcd.service.workers.process import Child, Errand, Outcome, send, wait_for_result, warm_up
from mlcd.service.workers.roster import Driving, Roster, Waiting, Worker
from mlcd.service.workers.stop_requests import BY_THE_USER
from mlcd.service.workers.submissions import NEVER_BEGAN, refused, waits

UI_ENDED = "mlcd ui ended before it began; submit it again"


class RunExecutor(Protocol):
    """Drives runs in separate processes, never in the calling one."""

    def send(self, run: str, launch: bool = False) -> None:
        """Start a submitted run, or resume one; `launch`: also run the decided configuration."""

    def stop(self, run: str) -> None:
        """Ask a run to stop after its current step; nothing is lost. One that waits in the queue never starts."""

    def down(self, run: str) -> None:
        """End a run now, whichever process drives it, and tear its machines down."""

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue; True if therefore no process works on it."""

    def alive(self) -> int:
        """How many processes of the executor are alive."""

    def adopt(self, older_than: timedelta) -> int:
        """Queue submissions that were stored but not queued; return their number."""

    def roster(self) -> Roster:
        """The workers, the runs that they drive, and the queue."""

    def close(self) -> None:
        """Start no more processes. Whether active runs go on depends on the executor."""


class LocalExecutor:
    """Drives runs in child processes. They end with this process, and their runs can be resumed.

    A run whose process dies, or whose ledger was locked, is retried once; after that its user has to resume it.
    """

    def __init__(self, ledger: Ledger, at_once: int | None = None, timing: Timing = TIMING) -> None:
        self._ledger, self._timing = ledger, timing
        self._at_once = at_once or max(2, os.cpu_count() or 2)
        self._lock = threading.RLock()
        self._waiting: deque[tuple[str, Errand, str]] = deque()
        self._children: dict[str, Child] = {}
        self._watchers: list[threading.Thread] = []
        self._retried: set[str] = set()
        self._closing = False
        warm_up()

    def send(self, run: str, launch: bool = False) -> None:
        """Start a submitted run, or resume one, as soon as there is a free slot."""
        with self._lock:
            if any(each == run for each, *_ in self._waiting):
                raise WrongState(f"run '{run}' is waiting for its turn already")
            self._ledger.request_action(run, None)  # resuming overrides an earlier request to stop
            self._retried.discard(run)
            self._enqueue(run, Errand.LAUNCH if launch else Errand.DRIVE)

    def stop(self, run: str) -> None:
        """Ask a run to stop: SIGINT to the process that drives it, a child or a command in some terminal."""
        with self._lock:
            withdrawn = self.withdraw(run)
            if run in self._children:  # one that is still starting reads it; one that ignores the signal is killed
                self._ledger.request_action(run, "stop")
            if not withdrawn and (run not in self._children or self._ledger.driver(run)):
                control.stop(run, self._ledger)

    def down(self, run: str) -> None:
        """End a run now, and start a process that tears down what is left."""
        with self._lock:
            if self.withdraw(run) and refused(run, self._ledger):
                return
            if run in self._children:
                self._ledger.request_action(run, "down")
            if driver := self._ledger.driver(run):
                with suppress(ProcessLookupError):
                    os.kill(driver, control.END_NOW)
            self._enqueue(run, Errand.TAKE_DOWN)

    def alive(self) -> int:
        """How many children are driving a run."""
        with self._lock:
            return len(self._children)

    def adopt(self, older_than: timedelta) -> int:
        """Nothing: this queue is in memory, so no database can be lost between a submission and its queue."""
        return 0

    def roster(self) -> Roster:
        """This process as the one worker, and its queue."""
        now = datetime.now(UTC)
        with self._lock:
            driven = [Driving(each.run, each.errand, None, each.since) for each in self._children.values()]
            waiting = [Waiting(run, errand, None, i, None, None) for i, (run, errand, _) in enumerate(self._waiting, 1)]
        me = Worker(1, now, True, tuple(driven), platform.node(), os.getpid(), self._at_once, VERSION)
        return Roster(now, (me,), tuple(waiting))

    def close(self) -> None:
        """End the children: launches are torn down and settled, runs can be resumed. Those in the queue are refused."""
        with self._lock:
            self._closing = True
            children = list(self._children.values())
            for run, *_ in self._waiting:
                self._refuse_unstarted(run)
            self._waiting.clear()
        for child in children:
            child.send_signal(signal.SIGTERM)
        for child in children:
            child.process.join(EXIT_TIMEOUT_S)
            child.send_signal(signal.SIGKILL)
            self._refuse_unstarted(child.run)
        for watcher in self._watchers:
            watcher.join(1.0)

    def _refuse_unstarted(self, run: str) -> None:
        with suppress(MlcdError):
            if waits(run, self._ledger):
                self._ledger.refuse(run, UI_ENDED)

    def _enqueue(self, run: str, errand: Errand) -> None:
        self._waiting.append((run, errand, BY_THE_USER))
        self._fill()

    def _fill(self) -> None:
        """Start the next runs while there are free slots; a run has one process at a time."""
        for run, errand, because in list(self._waiting):
            if self._closing or len(self._children) >= self._at_once:
                return
            if run not in self._children:
                self._waiting.remove((run, errand, because))
                child = self._children[run] = send(run, errand, self._ledger, because=because)
                self._watchers = [each for each in self._watchers if each.is_alive()]
                self._watchers.append(threading.Thread(target=self._watch, args=(child,), daemon=True))
                self._watchers[-1].start()

    def _watch(self, child: Child) -> None:
        why = wait_for_result(child, self._ledger, self._timing)
        outcome = child.outcome()
        with self._lock:
            del self._children[child.run]
            if why is not None and child.errand is not Errand.TAKE_DOWN and not self._closing:
                LOG.warning("run '%s': %s", child.run, why)
                self._waiting.appendleft((child.run, Errand.TAKE_DOWN, why))
            elif outcome in (Outcome.DIED, Outcome.AGAIN) and not self._closing:
                again = child.run not in self._retried
                self._retried.add(child.run)
                then = "it is retried" if again else f"continue it with: mlcd resume {child.run}"
                what = "died" if outcome is Outcome.DIED else "could not use the ledger"
                LOG.warning("run '%s': its process %s; %s", child.run, what, then)
                if again:
                    self._waiting.appendleft((child.run, child.errand, BY_THE_USER))
            self._fill()

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue if it is there; True if therefore no process works on it."""
        queued = [each for each in self._waiting if each[0] == run]
        for each in queued:
            self._waiting.remove(each)
        if run in self._children or self._ledger.driver(run) is not None:
            return False
        if waits(run, self._ledger):
            self._ledger.refuse(run, NEVER_BEGAN)
            return True
        return bool(queued)
