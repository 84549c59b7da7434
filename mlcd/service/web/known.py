"""What the feed knows of a run: a small summary of every one, and all entries of those that somebody looks at."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlcd.core.ledger import Account, Line, Status
from mlcd.reports.view import Summary, line_words
from mlcd.reports.view.summary import QUEUED
from mlcd.reports.view.view import reason_of

MOST_LINES = 20_000
"""Entries that are kept in memory; runs that nobody has touched for longest go first."""
NOTHING = b"[]"
"""The progress of a run that has nothing under way."""


@dataclass
class Whole:
    """A run with all its entries, replayed, and each as the bytes that watchers are sent."""

    lines: list[Line] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    frames: list[bytes] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    reason: str = ""

    @staticmethod
    def of(lines: Sequence[Line]) -> Whole:
        """From the ledger's lines."""
        whole = Whole()
        for line in lines:
            whole.add(line)
        return whole

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self.seqs[-1] if self.seqs else 0

    def add(self, line: Line) -> None:
        """One more entry; one that is here already is passed over."""
        if line.seq <= self.last:
            return
        self.account = self.account.after(line.entry, line.elapsed_s)
        self.lines.append(line)
        self.seqs.append(line.seq)
        self.frames.append(entry_frame(line, line_words(line, self.account.job)))
        self.reason = reason_of(line) or self.reason

    def after(self, seq: int) -> list[tuple[int, bytes]]:
        """What comes after this number, to be sent."""
        at = bisect_right(self.seqs, seq)
        return list(zip(self.seqs[at:], self.frames[at:], strict=True))


@dataclass
class Brief:
    """What is kept of every run. `changed` wakes whoever watches it, and is replaced by a new one each time.

    `over`: nobody drives it, and nobody is about to. `expected_until_s`: until then, on the system's clock, somebody is
    about to. `damaged`: why it cannot be replayed. `progress`: where its live launches stand, as JSON.
    """

    run: str
    last: int = 0
    summary: Summary | None = None
    driven: bool = False
    over: bool = False
    expected_until_s: float = 0.0
    damaged: str = ""
    progress: bytes = NOTHING
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Tell whoever watches."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether its last entry leaves something to be done without being asked again: a lost worker is replaced."""
        return self.summary is not None and self.summary.status in (Status.SEARCHING, Status.RUNNING)


class Shelf:
    """Whole runs, the least used of which go when there are too many entries."""

    def __init__(self, most_lines: int = MOST_LINES) -> None:
        self._runs: OrderedDict[str, Whole] = OrderedDict()
        self._most = most_lines

    def get(self, run: str) -> Whole | None:
        """The run, if it is here; it is then the last to go."""
        found = self._runs.get(run)
        if found is not None:
            self._runs.move_to_end(run)
        return found

    def put(self, run: str, whole: Whole) -> None:
        """Keep this one, and let others go where there are too many."""
        self._runs[run] = whole
        self._runs.move_to_end(run)
        self.trim()

    def drop(self, run: str) -> None:
        """Forget this one: it is read again when it is asked for."""
        self._runs.pop(run, None)

    def trim(self) -> None:
        """Let the least used go until the rest is small enough; the last one always stays."""
        kept = sum(len(whole.lines) for whole in self._runs.values())
        while kept > self._most and len(self._runs) > 1:
            _, gone = self._runs.popitem(last=False)
            kept -= len(gone.lines)

    def __len__(self) -> int:
        return sum(len(whole.lines) for whole in self._runs.values())


def entry_frame(line: Line, words: str) -> bytes:
    """An entry as a server-sent event."""
    told = {
        "seq": line.seq,
        "run": line.run,
        "kind": line.entry.kind,
        "elapsed_s": line.elapsed_s,
        "written_at": line.written_at.isoformat(),
        "words": words,
    }
    return frame("entry", told, line.seq)


def state_of(brief: Brief) -> dict[str, object]:
    """How a run stands, in short."""
    summary = brief.summary
    status, because = (summary.status, summary.because) if summary is not None else (QUEUED, "")
    return {"run": brief.run, "status": status, "driven": brief.driven, "because": because}


def state_frame(brief: Brief) -> bytes:
    """That as a server-sent event."""
    return frame("state", state_of(brief))


def progress_frame(brief: Brief) -> bytes:
    """Where its launches stand, as a server-sent event. It has no number: only entries are sent again."""
    return b'event: progress\ndata: {"run":%b,"progress":%b}\n\n' % (json.dumps(brief.run).encode(), brief.progress)


def frame(event: str, told: object, number: int | None = None) -> bytes:
    """A server-sent event; JSON has no line breaks, so the data is one line."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(told)}\n\n".encode()
