"""Copies the logs of a run's launches, and what their machines used, into the database, for a service elsewhere.

Not on SQLite: that is used by one person, on the machine with the files.
"""

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlcd.clouds import usage
from mlcd.clouds.launches import Launches, launches_here
from mlcd.core.database.files import PIECE_BYTES, LogPieces
from mlcd.core.errors import LedgerError
from mlcd.core.ledger import Ledger
from mlcd.service.workers.log import LOG

COPY_EVERY_S = 2.0
LAST_COPY_TIMEOUT_S = 10.0  # how long the end of a run waits for the last copy
USAGE = -1  # in place of a process's number: what the machines used
MOST_BYTES = 8 << 20  # most bytes copied of one log; the rest stays in the file


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
            for log in (*sorted(folder.glob("[0-9]*.log")), *folder.glob(usage.FILE)):
                self._copy(log, ended)
            if ended:
                self._done.add(folder)

    def _copy(self, log: Path, ended: bool) -> None:
        label, process = log.parent.name, _process(log)
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
        self._pieces.append(log.parent.name, _process(log), end, body)
        self._ends[log] = end + len(body), not body
        return end + len(body)


def _process(log: Path) -> int:
    return USAGE if log.name == usage.FILE else int(log.stem)


@contextmanager
def logs_copied(run: str, ledger: Ledger) -> Iterator[None]:
    """Copy the run's logs while the block runs, and the rest at its end. A run never fails because of this."""
    if ledger.database.dialect == "sqlite":
        yield
        return
    copies, over = LogCopies(run, LogPieces(ledger.database), launches_here()), threading.Event()

    def copy_new() -> None:
        try:
            copies.copy_new()
        except (LedgerError, OSError) as error:  # the next attempt copies what this one missed
            LOG.info("run '%s': its logs are not copied now: %s", run, error)

    def watch() -> None:
        while not over.wait(COPY_EVERY_S):
            copy_new()
        copy_new()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(LAST_COPY_TIMEOUT_S)
