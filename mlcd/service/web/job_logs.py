"""The logs and the resource usage of a run's launches: files on this machine, or copies in the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlcd.clouds.launches import Launches
from mlcd.clouds.usage import MAX_BYTES, Usage, usage_in, usage_of
from mlcd.core.backend import Provenance
from mlcd.core.database.files import PIECE_BYTES, LogPieces
from mlcd.core.ledger import Settled, Voided
from mlcd.service.web.errors import Refusal
from mlcd.service.workers.log_copies import USAGE

if TYPE_CHECKING:
    from mlcd.service.web.state import State
    from mlcd.service.web.views import Snapshot

SILENT = timedelta(minutes=1)  # so long after a launch was settled, no more of its log is expected


class JobLog(Protocol):
    """The log of a process. `over`: nothing more will come."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""

    def read(self, at: int, most: int) -> bytes:
        """At most so many bytes from there."""


@dataclass(frozen=True)
class FileLog:
    """A log file on this machine. `path`: None while there is none yet. `over` was read before `size`."""

    path: Path | None
    over: bool
    size: int

    def read(self, at: int, most: int) -> bytes:
        """At most so many bytes from there."""
        if self.path is None:
            return b""
        with self.path.open("rb") as file:
            file.seek(at)
            return file.read(min(most, max(0, self.size - at)))


@dataclass(frozen=True)
class CopiedLog:
    """A log that a worker on another machine copies into the database, in pieces."""

    pieces: LogPieces
    label: str
    process: int
    size: int
    over: bool

    def read(self, at: int, most: int) -> bytes:
        """At most so many bytes from there."""
        return self.pieces.read(self.label, self.process, at, min(most, max(0, self.size - at)))


NOTHING_YET = FileLog(None, False, 0)


@dataclass(frozen=True)
class JobLogs:
    """All logs of a run."""

    state: State
    snapshot: Snapshot
    launches: Launches = field(init=False)
    pieces: LogPieces = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "launches", Launches(self.state.settings.home / "launches"))
        object.__setattr__(self, "pieces", LogPieces(self.state.database))

    def open(self, launch: int | None, process: int) -> tuple[int, JobLog]:
        """The number of a launch and the log of one of its processes. `launch`: None for the newest with a log."""
        numbers = [launch] if launch is not None else list(range(self.snapshot.account.orders, 0, -1))
        copied = self.pieces.with_log([self._label(n) for n in numbers], process)
        for number in numbers:
            if (log := self._log(self._label(number), process, copied)) is not None:
                return number, log
        raise Refusal(404, f"run '{self.snapshot.run}' has no such log; logs are kept of launches on real machines")

    def with_logs(self) -> list[int]:
        """The launches that have a log."""
        labels = {self._label(n): n for n in range(1, self.snapshot.account.orders + 1)}
        copied = self.pieces.with_log(list(labels), 0)
        return [n for label, n in labels.items() if label in copied or self._began_here(label)]

    def processes(self, launch: int) -> list[int]:
        """The processes of a launch that have a log."""
        if (folder := self.launches.find(self._label(launch))) is not None:
            return sorted(int(log.stem) for log in folder.glob("[0-9]*.log") if log.stem.isdecimal())
        return [process for process in self.pieces.processes(self._label(launch)) if process >= 0]

    def usage(self, launch: int) -> Usage | None:
        """What a launch's machines used; None if nothing was recorded."""
        label = self._label(launch)
        if (folder := self.launches.find(label)) is not None:
            return usage_in(folder)
        return usage_of(self.pieces.read(label, USAGE, 0, MAX_BYTES))

    def _began_here(self, label: str) -> bool:
        return (folder := self.launches.find(label)) is not None and (folder / "0.log").exists()

    def _label(self, launch: int) -> str:
        return f"{self.snapshot.run}-{launch}"

    def _log(self, label: str, process: int, copied: set[str]) -> JobLog | None:
        if (folder := self.launches.find(label)) is not None:  # it ran on this machine
            over = (folder / "ended").exists()  # checked before the size, so that no output is missed
            path = self.launches.log(folder, process)
            if path is None:
                return NOTHING_YET
            return FileLog(path, over, path.stat().st_size) if path.exists() else None
        if label in copied:
            end, over = self.pieces.end(label, process)
            return CopiedLog(self.pieces, label, process, end, over or self._was_settled(label))
        return NOTHING_YET if self._may_write(label) and not self.pieces.with_log([label], 0) else None

    def _may_write(self, label: str) -> bool:
        """Whether a launch is active: a worker on another machine copies its log with a delay of some seconds."""
        account = self.snapshot.account
        is_open = any(reserved.launch.label == label for reserved in account.open)
        return is_open and self.snapshot.driven and account.provenance is Provenance.LIVE

    def _was_settled(self, label: str) -> bool:
        """Whether a launch was settled so long ago that no more of its log is expected."""
        before = datetime.now(UTC) - SILENT
        past = (line.entry for line in self.snapshot.lines if line.written_at < before)
        return any(isinstance(entry, Settled | Voided) and entry.launch.label == label for entry in past)


def byte_range(log: JobLog, first: int, last: int) -> Iterator[bytes]:
    """The bytes of a log from `first` to `last`, inclusive, in pieces."""
    while first <= last and (piece := log.read(first, min(PIECE_BYTES, last + 1 - first))):
        yield piece
        first += len(piece)
