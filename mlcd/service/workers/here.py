"""One person's crew: child processes of `mlcd ui`, a few at once; the others wait in order."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from contextlib import suppress

from mlcd.clouds.control import END_NOW
from mlcd.core.errors import MlcdError, WrongState
from mlcd.core.ledger import Ledger
from mlcd.service.workers.crew import NEVER_BEGAN, refused, waits
from mlcd.service.workers.log import LOG
from mlcd.service.workers.pace import PACE, Pace
from mlcd.service.workers.process import LEAVES_WITHIN_S, Child, Errand, Outcome, send, warm_up, watched
from mlcd.service.workers.told import BY_THE_USER

UI_ENDED = "mlcd ui ended before it began; submit it again"


class Here:
    """Drives runs in children of this process; they end with it, and what they drove can be resumed.

    A run whose process dies, or whose ledger was locked, gets one more process; after that it waits for its user.
    """

    def __init__(self, ledger: Ledger, at_once: int | None = None, pace: Pace = PACE) -> None:
        self._ledger, self._pace = ledger, pace
        self._at_once = at_once or max(2, os.cpu_count() or 2)
        self._turn = threading.RLock()
        self._waiting: deque[tuple[str, Errand, str]] = deque()
        self._children: dict[str, Child] = {}
        self._watchers: list[threading.Thread] = []
        self._given_another: set[str] = set()
        self._closing = False
        warm_up()

    def send(self, run: str, launch: bool = False) -> None:
        """Begin a run that was asked for, or go on with one, as soon as there is room."""
        with self._turn:
            if any(each == run for each, *_ in self._waiting):
                raise WrongState(f"run '{run}' is waiting for its turn already")
            self._ledger.wish(run, None)  # whoever goes on has forgotten what was wished for before
            self._given_another.discard(run)
            self._enqueue(run, Errand.LAUNCH if launch else Errand.SEE_THROUGH)

    def stop(self, run: str) -> None:
        """Ask a run to stop; whoever drives it, a child or a command in some terminal, hears it as Ctrl-C."""
        from mlcd.clouds import control

        with self._turn:
            withdrawn = self.withdraw(run)
            if not self._ledger.driver(run) and run in self._children:  # it has hardly started, and will look
                self._ledger.wish(run, "stop")
            elif not withdrawn:
                if run in self._children:  # should it not hear the signal, it is ended from outside
                    self._ledger.wish(run, "stop")
                control.stop(run, self._ledger)

    def down(self, run: str) -> None:
        """End a run now, and send a process that tears down what is left."""
        with self._turn:
            if self.withdraw(run) and refused(run, self._ledger):
                return
            driver = self._ledger.driver(run)
            if run in self._children:
                self._ledger.wish(run, "down")
            if driver:
                with suppress(ProcessLookupError):
                    os.kill(driver, END_NOW)
            self._enqueue(run, Errand.TAKE_DOWN)

    def alive(self) -> int:
        """How many children drive a run now."""
        with self._turn:
            return len(self._children)

    def close(self) -> None:
        """End the children: what they drive is torn down and settled, and can be resumed. What waits never begins."""
        with self._turn:
            self._closing = True
            children = list(self._children.values())
            for run, *_ in self._waiting:
                with suppress(MlcdError):
                    if waits(run, self._ledger):
                        self._ledger.refuse(run, UI_ENDED)
            self._waiting.clear()
        for child in children:
            child.tell(signal.SIGTERM)
        for child in children:
            child.process.join(LEAVES_WITHIN_S)
            child.tell(signal.SIGKILL)
            with suppress(MlcdError):
                if waits(child.run, self._ledger):  # it had hardly started
                    self._ledger.refuse(child.run, UI_ENDED)
        for watcher in self._watchers:
            watcher.join(1.0)

    def _enqueue(self, run: str, errand: Errand) -> None:
        self._waiting.append((run, errand, BY_THE_USER))
        self._fill()

    def _fill(self) -> None:
        """Send whoever is next while there is room; a run has one process at a time."""
        for run, errand, because in list(self._waiting):
            if self._closing or len(self._children) >= self._at_once:
                return
            if run not in self._children:
                self._waiting.remove((run, errand, because))
                child = self._children[run] = send(run, errand, self._ledger, because=because)
                self._watchers = [each for each in self._watchers if each.is_alive()]
                self._watchers.append(threading.Thread(target=self._look_after, args=(child,), daemon=True))
                self._watchers[-1].start()

    def _look_after(self, child: Child) -> None:
        why = watched(child, self._ledger, self._pace)
        outcome = child.outcome()
        with self._turn:
            del self._children[child.run]
            if why is not None and child.errand is not Errand.TAKE_DOWN and not self._closing:
                LOG.warning("run '%s': %s", child.run, why)
                self._waiting.appendleft((child.run, Errand.TAKE_DOWN, why))
            elif outcome in (Outcome.DIED, Outcome.AGAIN) and not self._closing:
                again = child.run not in self._given_another
                self._given_another.add(child.run)
                then = "another one goes on" if again else f"go on with: mlcd resume {child.run}"
                LOG.warning("run '%s': its process %s; %s", child.run, _told(outcome), then)
                if again:
                    self._waiting.appendleft((child.run, child.errand, BY_THE_USER))
            self._fill()

    def withdraw(self, run: str) -> bool:
        """Take a run out of the row, whether or not it stood there; True if nobody is at it now because of that."""
        stood = [each for each in self._waiting if each[0] == run]
        for each in stood:
            self._waiting.remove(each)
        if run in self._children or self._ledger.driver(run) is not None:
            return False
        if waits(run, self._ledger):
            self._ledger.refuse(run, NEVER_BEGAN)
            return True
        return bool(stood)


def _told(outcome: Outcome) -> str:
    return "died" if outcome is Outcome.DIED else "could not use the ledger"
