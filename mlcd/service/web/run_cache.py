"""What the feed caches: a small summary of every run, all entries of those in use, and the newest events of all."""

import asyncio
import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Self

from mlcd.core.ledger import Account, Line, Status
from mlcd.reports.events import entry_event
from mlcd.reports.view.summary import QUEUED, Summary
from mlcd.reports.view.view import reason_of

MOST_LINES = 20_000  # entries that are cached; the least recently used runs are evicted first
NOTHING = b"[]"  # the progress of a run without live launches
MOST_EVENTS = 10_000


@dataclass
class LoadedRun:
    """A run with all its entries, its account, and each entry's number and server-sent event."""

    lines: list[Line] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    events: list[tuple[int, bytes]] = field(default_factory=list)
    reason: str = ""

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Self:
        """From the ledger's lines."""
        loaded = cls()
        for line in lines:
            loaded.add(line)
        return loaded

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self.lines[-1].seq if self.lines else 0

    def add(self, line: Line) -> None:
        """Add an entry; one that is already known is ignored."""
        if line.seq <= self.last:
            return
        self.account = self.account.after(line.entry, line.elapsed_s)
        self.lines.append(line)
        self.events.append((line.seq, entry_frame(line, self.account)))
        self.reason = reason_of(line) or self.reason

    def after(self, seq: int) -> list[tuple[int, bytes]]:
        """The events after this number, with their numbers."""
        return self.events[bisect_right(self.events, seq, key=itemgetter(0)) :]


@dataclass
class RunState:
    """What is cached of every run. `changed` wakes its watchers, and is then replaced by a new event.

    `over`: it is not driven, nor about to be. `expected_until_s`: until this time (monotonic) it is about to be driven.
    `damaged`: why it cannot be replayed. `progress`: of its live launches, as JSON.
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
        """Wake its watchers."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether workers will continue it by themselves: it is searching or running."""
        return self.summary is not None and self.summary.status in (Status.SEARCHING, Status.RUNNING)


class RunCache:
    """An LRU cache of runs with all their entries."""

    def __init__(self, most_lines: int = MOST_LINES) -> None:
        self._runs: OrderedDict[str, LoadedRun] = OrderedDict()
        self._most = most_lines

    def get(self, run: str) -> LoadedRun | None:
        """The run if it is cached; it becomes the most recently used."""
        loaded = self._runs.get(run)
        if loaded is not None:
            self._runs.move_to_end(run)
        return loaded

    def put(self, run: str, loaded: LoadedRun) -> None:
        """Add a run, and evict others if there are too many entries."""
        self._runs[run] = loaded
        self._runs.move_to_end(run)
        self.trim()

    def remove(self, run: str) -> None:
        """Remove a run: it is read again when it is needed."""
        self._runs.pop(run, None)

    def trim(self) -> None:
        """Evict the least recently used runs until the rest is small enough; one always stays."""
        lines = self.lines()
        while lines > self._most and len(self._runs) > 1:
            _, evicted = self._runs.popitem(last=False)
            lines -= len(evicted.lines)

    def lines(self) -> int:
        """How many entries are cached."""
        return sum(len(loaded.lines) for loaded in self._runs.values())


class RecentEvents:
    """The newest events of all runs, in one sequence that is cut at the start. Changes of state have no number."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._events: list[tuple[int | None, bytes]] = []
        self._numbers: list[int] = []  # for each event, the number of the last entry up to and with it
        self._before = 0
        self.start = 0
        self.changed = asyncio.Event()

    @property
    def end(self) -> int:
        """The position of the next event."""
        return self.start + len(self._events)

    def add(self, number: int | None, event: bytes) -> None:
        """Add an event."""
        last = self._numbers[-1] if self._numbers else self._before
        self._events.append((number, event))
        self._numbers.append(number if number is not None else last)
        if len(self._events) > 2 * self._most:  # rarely, since it moves all that remains
            cut = len(self._events) - self._most
            self._before = self._numbers[cut - 1]
            del self._events[:cut], self._numbers[:cut]
            self.start += cut

    def position_after(self, number: int) -> int | None:
        """The position of the first event after this entry; None if some of them are already cut off."""
        if number < self._before:
            return None
        return self.start + bisect_right(self._numbers, number)

    def from_(self, position: int) -> list[tuple[int | None, bytes]] | None:
        """The events from this position on; None if that is already cut off."""
        return self._events[position - self.start :] if position >= self.start else None

    def wake(self) -> None:
        """Wake the watchers."""
        self.changed.set()
        self.changed = asyncio.Event()


def entry_frame(line: Line, account: Account) -> bytes:
    """An entry as a server-sent event, with the same data as a line of `--watch-json`."""
    data = entry_event(line, account).model_dump(mode="json")
    return frame("entry", data | {"written_at": line.written_at.isoformat()}, line.seq)


def state_of(brief: RunState) -> dict[str, object]:
    """The state of a run, in short."""
    summary = brief.summary
    status, because = (summary.status, summary.because) if summary is not None else (QUEUED, "")
    return {"run": brief.run, "status": status, "driven": brief.driven, "because": because}


def state_frame(brief: RunState) -> bytes:
    """The state as a server-sent event."""
    return frame("state", state_of(brief))


def progress_frame(brief: RunState) -> bytes:
    """The progress of its launches as a server-sent event. Without a number: only entries are sent again."""
    return b'event: progress\ndata: {"run":%b,"progress":%b}\n\n' % (json.dumps(brief.run).encode(), brief.progress)


def frame(event: str, data: object, number: int | None = None) -> bytes:
    """A server-sent event; JSON has no line breaks, so the data is one line."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n".encode()
