"""Writes the progress of running jobs to the database, for readers on other machines: only the newest report."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mlcd.core.backend import Launch
from mlcd.core.errors import MlcdError
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Line, Settled, Voided
from mlcd.core.measurement import Sample
from mlcd.reports.launch_progress import Headway, ProgressMeter, to_json

EVERY_S = 2.0
LAST_WRITE_TIMEOUT_S = 3.0  # how long the end of a run waits for the last write


class ProgressWriter:
    """The progress of a run's live launches, written by a thread: the run neither waits for it nor fails by it."""

    def __init__(self, ledger: Ledger, every_s: float = EVERY_S, now: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._every_s, self._now = ledger, every_s, now
        self._run = ""
        self._meter = ProgressMeter()
        self._newest: dict[str, Headway] = {}
        self._signalled_at = float("-inf")
        self._lock, self._due, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._writer: threading.Thread | None = None

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A job reports progress: the first report of a launch is written at once, later ones every few seconds."""
        with self._lock:  # parallel launches report from different threads
            first = launch.label not in self._newest
            self._newest[launch.label] = self._meter(job, launch, sample)
            if first or self._now() - self._signalled_at >= self._every_s:
                self._signalled_at = self._now()
                self._signal()

    def on_entry(self, line: Line) -> None:
        """A ledger entry was written: a settled launch has no more progress."""
        if not isinstance(line.entry, Settled | Voided):
            return
        with self._lock:
            self._meter.forget(line.entry.launch.label)
            if self._newest.pop(line.entry.launch.label, None) is not None:
                self._signal()

    @contextmanager
    def writing(self, run: str) -> Iterator[None]:
        """Write while the run is driven. Before, delete what a killed process left behind."""
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
                self._writer.join(LAST_WRITE_TIMEOUT_S)

    def _signal(self) -> None:
        """There is something to write. The thread starts with the first report: simulated runs never report."""
        self._due.set()
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, daemon=True)
            self._writer.start()

    def _write(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            over = self._over.is_set()
            with self._lock:
                newest = [] if over else list(self._newest.values())
            with suppress(MlcdError):  # the database is unreachable for a moment: the next write replaces this one
                self._ledger.set_progress(self._run, to_json(newest) if newest else None)
            if over:
                return
