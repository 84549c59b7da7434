"""Requests to the process that drives a run: stop after this step, or end now."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from mlcd.clouds.control import END_NOW
from mlcd.core.errors import Interrupted, LedgerError, WrongState
from mlcd.core.ledger import Ledger

HAND_OVER = signal.SIGUSR1  # signal: stop after the current step, and leave the run to another worker
SIGNALS = (signal.SIGINT, signal.SIGTERM, END_NOW, HAND_OVER)
POLL_S = 1.0
RETRY_S = 0.02
BY_THE_USER = "taken down by the user"
TAKEN_OVER = "another process has taken it over"
BY_ITS_WORKER = "the process that drove it was told to end"


class StopRequests:
    """Polls the user's request in the database, and handles signals: SIGINT stops after the current step, SIGTERM and
    `END_NOW` end it now, `HAND_OVER` leaves it to another worker.

    Ending now is a KeyboardInterrupt in the main thread: only once, so that the teardown is not interrupted, and never
    during a ledger transaction.

    `queued`: another process will continue what this one leaves. The run is not marked as stopped then, and keeps its
    claim on its owner's budget.
    """

    def __init__(self, run: str, ledger: Ledger, every_s: float = POLL_S, queued: bool = False) -> None:
        self._run, self._ledger, self._every_s, self._queued = run, ledger, every_s, queued
        self._stop = self._interrupted = self._hand_over = False
        self.by_user = False  # a run that only its worker leaves is continued by another one
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.because = BY_ITS_WORKER  # the reason of an end now

    def stop(self) -> bool:
        """Whether to stop before the next step; raises `Interrupted` to leave the run to another worker."""
        if self.hands_over:
            raise Interrupted("left to another worker")
        return self._stop

    @property
    def hands_over(self) -> bool:
        """Whether only this process has to end, not the run: another process continues it."""
        return self._queued and self._hand_over and not self.by_user and self.because == BY_ITS_WORKER

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals and requests. Call it in the main thread of the run's own process."""
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            yield
        finally:
            with self._lock:  # after this the polling thread sends no signal
                self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Read the user's request in the database."""
        request = self._ledger.requested_action(self._run)
        self._stop = self._stop or request is not None
        self.by_user = self.by_user or request is not None
        if request == "down" and not self._interrupted:
            self.because = BY_THE_USER
            self._interrupt()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(LedgerError):  # the database is unreachable for a moment: the next poll will show it
                try:
                    self._ledger.keep(self._run)
                    self.check()
                except WrongState:  # another process drives it now: two would pay twice
                    self.because = TAKEN_OVER
                    self._interrupt()
                    return

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._hand_over = self._hand_over or number != signal.SIGINT
        if number == HAND_OVER:
            return
        self._stop = True
        self.by_user = self.by_user or number in (signal.SIGINT, END_NOW)
        if number == END_NOW:
            self.because = BY_THE_USER
        if number == signal.SIGINT or self._interrupted:
            return
        if _in_the_ledger(frame):
            threading.Timer(RETRY_S, self._interrupt).start()
            return
        self._interrupted = True
        raise KeyboardInterrupt

    def _interrupt(self) -> None:
        with self._lock:
            if not self._over.is_set():
                interrupt_main()


def _in_the_ledger(frame: FrameType | None) -> bool:
    """Whether the ledger is being read or written: an interrupted transaction would keep its lock."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("mlcd.core.ledger", "mlcd.core.database")):
            return True
        frame = frame.f_back
    return False


def interrupt_main() -> None:
    """Send SIGTERM to this process's main thread: unlike a flag, it also ends a sleep or a wait there."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGTERM)
