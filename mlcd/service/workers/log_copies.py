"""What a run's launches write on this machine, copied into the database as it grows: a service may be elsewhere.

Not on SQLite: that is one person's, whose files are right there.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlcd.clouds.launches import Launches, launches_here
from mlcd.core.database.log_pieces import PIECE_BYTES, LogPieces
from mlcd.core.errors import LedgerError
from mlcd.core.ledger import Ledger
from mlcd.service.workers.log import LOG

LOOKS_EVERY_S = 2.0
LAST_LOOK_S = 10.0
"""That the end of a run waits for the end of its logs."""
MOST_BYTES = 8 << 20
"""Of one log; the rest stays where it was written."""


class LogCopies:
    """The logs of one run. Whoever looks drives the run, so that nobody else writes them."""

    def __init__(self, run: str, pieces: LogPieces, kept: Launches, most_bytes: int = MOST_BYTES) -> None:
        self._run, self._pieces, self._kept, self._most_bytes = run, pieces, kept, most_bytes
        self._ends: dict[Path, tuple[int, bool]] = {}
        self._over: set[Path] = set()

    def look(self) -> None:
        """Copy what is new."""
        for folder in self._kept.of_run(self._run):
            if folder in self._over:
                continue
            over = (folder / "ended").exists()  # before reading: then nothing is missed
            for log in sorted(folder.glob("[0-9]*.log")):
                self._copy(log, over)
            if over:
                self._over.add(folder)

    def _copy(self, log: Path, over: bool) -> None:
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
        if too_long or over:
            self._append(log, end, b"")

    def _append(self, log: Path, end: int, body: bytes) -> int:
        self._pieces.append(log.parent.name, int(log.stem), end, body)
        self._ends[log] = end + len(body), not body
        return end + len(body)


@contextmanager
def logs_copied(run: str, ledger: Ledger, every_s: float = LOOKS_EVERY_S) -> Iterator[None]:
    """Copy the run's logs meanwhile, and what is left of them at the end. A run never fails by it."""
    if ledger.database.dialect == "sqlite":
        yield
        return
    copies, over = LogCopies(run, LogPieces(ledger.database), launches_here()), threading.Event()

    def look() -> None:
        try:
            copies.look()
        except (LedgerError, OSError) as error:  # the next look finds what this one missed
            LOG.info("run '%s': its logs are not copied now: %s", run, error)

    def watch() -> None:
        while not over.wait(every_s):
            look()
        look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(LAST_LOOK_S)
