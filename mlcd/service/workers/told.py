"""What the process that drives a run is told while it works: stop after this step, or end now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from mlcd.clouds.control import END_NOW
from mlcd.core.errors import Interrupted, LedgerError, WrongState
from mlcd.core.ledger import Ledger

LEAVE = signal.SIGUSR1
"""Stop where nothing is lost, and leave the run to another worker."""
HEARD = (signal.SIGINT, signal.SIGTERM, END_NOW, LEAVE)
LOOKS_EVERY_S = 1.0
SOON_S = 0.02
BY_THE_USER = "taken down by the user"
TAKEN_OVER = "another process has taken it over"
BY_ITS_WORKER = "the process that drove it was told to end"


class Told:
    """Hears the wish that stands in the database, and signals: SIGINT asks to stop, SIGTERM and
    `END_NOW` end it now, `LEAVE`.

    Ending now is a KeyboardInterrupt in the main thread, once, and never while the ledger
    is at work: tearing down is not interrupted again.

    `queued`: what this process leaves, another one goes on with. It is not stopped then, and keeps its claim on its
    owner's budget.
    """

    def __init__(self, run: str, ledger: Ledger, every_s: float = LOOKS_EVERY_S, queued: bool = False) -> None:
        self._run, self._ledger, self._every_s, self._queued = run, ledger, every_s, queued
        self._stop = self._interrupted = self._leave = False
        self.by_user = False
        """Whether it was its user who said so: a run that a worker leaves is another one's to begin."""
        self._over = threading.Event()
        self._turn = threading.Lock()
        self.because = BY_ITS_WORKER
        """Why it is to end now, if it is."""

    def stop(self) -> bool:
        """Whether to stop before the next step; `Interrupted` if it is to be left as it stands."""
        if self.passes_on:
            raise Interrupted("left to another worker")
        return self._stop

    @property
    def passes_on(self) -> bool:
        """Whether this process was told to end, not the run: another one goes on with it."""
        return self._queued and self._leave and not self.by_user and self.because == BY_ITS_WORKER

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear signals and wishes, in the main thread of a process of the run's own."""
        before = {number: signal.signal(number, self._heard) for number in HEARD}
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            yield
        finally:
            with self._turn:  # the watcher sends no signal from here on
                self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)

    def look(self) -> None:
        """See what is wished for now."""
        wish = self._ledger.wished(self._run)
        self._stop = self._stop or wish is not None
        self.by_user = self.by_user or wish is not None
        if wish == "down" and not self._interrupted:
            self.because = BY_THE_USER
            self._interrupt()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(LedgerError):  # a database that is away for a moment: the next look will tell
                try:
                    self._ledger.keep(self._run)
                    self.look()
                except WrongState:  # somebody else drives it now: two would pay twice
                    self.because = TAKEN_OVER
                    self._interrupt()
                    return

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._leave = self._leave or number != signal.SIGINT
        if number == LEAVE:
            return
        self._stop = True
        self.by_user = self.by_user or number in (signal.SIGINT, END_NOW)
        if number == END_NOW:
            self.because = BY_THE_USER
        if number == signal.SIGINT or self._interrupted:
            return
        if _in_the_ledger(frame):
            threading.Timer(SOON_S, self._interrupt).start()
            return
        self._interrupted = True
        raise KeyboardInterrupt

    def _interrupt(self) -> None:
        with self._turn:
            if not self._over.is_set():
                interrupt_main()


def _in_the_ledger(frame: FrameType | None) -> bool:
    """Whether the ledger is being read or written: a transaction that is torn apart would keep its lock."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("mlcd.core.ledger", "mlcd.core.database")):
            return True
        frame = frame.f_back
    return False


def interrupt_main() -> None:
    """SIGTERM to this process's main thread: a sleep or a wait there ends, which a flag alone would not do."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGTERM)
