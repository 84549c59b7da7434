"""What a driver copies to the database for readers on other machines: the progress of running jobs, and their logs."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlcd.clouds.launches import Launches, launches_here
from mlcd.core.backend import Launch
from mlcd.core.database.log_pieces import PIECE_BYTES, LogPieces
from mlcd.core.errors import LedgerError, MlcdError
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Line, Settled, Voided
from mlcd.core.measurement import Sample
from mlcd.reports.headway import Gauge, Headway, to_json
from mlcd.service.workers.log import LOG

EVERY_S = 2.0
COPY_EVERY_S = 2.0
LAST_COPY_TIMEOUT_S = 10.0  # how long the end of a run waits for the last copy
MOST_BYTES = 8 << 20  # most bytes copied of one log; the rest stays in the file
LAST_WRITE_TIMEOUT_S = 3.0  # how long the end of a run waits for the last write


class ProgressWriter:
    """The progress of a run's live launches, written by a thread: the run neither waits nor fails."""

    def __init__(self, ledger: Ledger, every_s: float = EVERY_S, now: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._every_s, self._now = ledger, every_s, now
        self._run = ""
        self._gauge = Gauge()
        self._newest: dict[str, Headway] = {}
        self._signalled_at = float("-inf")
        self._lock, self._due, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._writer: threading.Thread | None = None

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A job reports progress: the first report of a launch is written at once, later ones every few seconds."""
        with self._lock:  # parallel launches report from different threads
            first = launch.label not in self._newest
            self._newest[launch.label] = self._gauge(job, launch, sample)
            if first or self._now() - self._signalled_at >= self._every_s:
                self._signalled_at = self._now()
                self._signal()

    def on_entry(self, line: Line) -> None:
        """A ledger entry was written: a settled launch has no more progress."""
        if not isinstance(line.entry, Settled | Voided):
            return
        with self._lock:
            self._gauge.forget(line.entry.launch.label)
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


class LogCopies:
    """The logs of one run. Only the process that drives the run writes them."""

    def __init__(self, run: str, pieces: LogPieces, launches: Launches, most_bytes: int = MOST_BYTES) -> None:
        self._run, self._pieces, self._launches, self._most_bytes = run, pieces, launches, most_bytes
        self._ends: dict[Path, tuple[int, bool]] = {}
        self._done: set[Path] = set()

    def copy_new(self) -> None:
        """Copy new output."""
        for folder in self._launches.of_run(self._run):
            if folder in self._done:
                continue
            ended = (folder / "ended").exists()  # checked before reading, so that no output is missed
            for log in sorted(folder.glob("[0-9]*.log")):
                self._copy(log, ended)
            if ended:
                self._done.add(folder)

    def _copy(self, log: Path, ended: bool) -> None:
        label, process = log.parent.name, int(log.stem)
        if log not in self._ends:
            self._ends[log] = self._pieces.end(label, process)
        end, closed = self._ends[log]
        if closed:
            return
        with log.open("rb") as file:
            file.seek(end)
            while end < self._most_bytes and (body := file.read(min(PIECE_BYTES, self._most_bytes - end))):
                end = self._append(log, end, body)
            too_long = bool(file.read(1))
        if too_long:
            rest = f"\nmlcd: the rest of this log is on {platform.node()}, in {log.absolute()}\n"
            end = self._append(log, end, rest.encode())
        if too_long or ended:
            self._append(log, end, b"")

    def _append(self, log: Path, end: int, body: bytes) -> int:
        self._pieces.append(log.parent.name, int(log.stem), end, body)
        self._ends[log] = end + len(body), not body
        return end + len(body)


@contextmanager
def logs_copied(run: str, ledger: Ledger, every_s: float = COPY_EVERY_S) -> Iterator[None]:
    """Copy the run's logs while the block runs, and the rest at its end. A run never fails because of this."""
    if ledger.database.dialect == "sqlite":  # used by one person, on the machine with the files
        yield
        return
    copies, over = LogCopies(run, LogPieces(ledger.database), launches_here()), threading.Event()

    def copy_new() -> None:
        try:
            copies.copy_new()
        except (LedgerError, OSError) as error:  # the next attempt copies what this one missed
            LOG.info("run '%s': its logs are not copied now: %s", run, error)

    def watch() -> None:
        while not over.wait(every_s):
            copy_new()
        copy_new()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(LAST_COPY_TIMEOUT_S)
