"""What running jobs report, noted in the database for whoever looks from elsewhere: the newest alone, now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mlcd.core.backend import Launch
from mlcd.core.errors import MlcdError
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Line, Settled, Voided
from mlcd.core.measurement import Sample
from mlcd.reports.headway import Gauge, Headway, to_json

EVERY_S = 2.0
LEAVES_WITHIN_S = 3.0
"""How long the end of a run waits for its last note."""


class Noted:
    """Where the live launches of a run stand. A thread writes it: the run neither waits for that nor fails by it."""

    def __init__(self, ledger: Ledger, every_s: float = EVERY_S, now: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._every_s, self._now = ledger, every_s, now
        self._run = ""
        self._gauge = Gauge()
        self._newest: dict[str, Headway] = {}
        self._signalled_at = float("-inf")
        self._turn, self._due, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._writer: threading.Thread | None = None

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A job reports: noted at once if it is the first report of its launch, and now and then after that."""
        with self._turn:  # launches that are under way together report from threads of their own
            first = launch.label not in self._newest
            self._newest[launch.label] = self._gauge(job, launch, sample)
            if first or self._now() - self._signalled_at >= self._every_s:
                self._signalled_at = self._now()
                self._signal()

    def hear(self, line: Line) -> None:
        """An entry was written: what is settled is under way no more."""
        if not isinstance(line.entry, Settled | Voided):
            return
        with self._turn:
            self._gauge.forget(line.entry.launch.label)
            if self._newest.pop(line.entry.launch.label, None) is not None:
                self._signal()

    @contextmanager
    def noting(self, run: str) -> Iterator[None]:
        """For as long as the run is driven. Before and after that nothing is under way: who was killed left a note."""
        self._run = run
        with suppress(MlcdError):
            if self._ledger.progress([run]):
                self._ledger.set_progress(run, None)
        try:
            yield
        finally:
            self._over.set()
            if self._writer is not None:
                self._due.set()
                self._writer.join(LEAVES_WITHIN_S)

    def _signal(self) -> None:
        """There is something to write. A run that only computes never reports, and needs no thread."""
        self._due.set()
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, daemon=True)
            self._writer.start()

    def _write(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            over = self._over.is_set()
            with self._turn:
                newest = [] if over else list(self._newest.values())
            with suppress(MlcdError):  # a database that is away for a moment: the next note will do
                self._ledger.set_progress(self._run, to_json(newest) if newest else None)
            if over:
                return
