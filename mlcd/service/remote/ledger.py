"""The runs of a server with the interface of a local ledger, so that reports work with both; and following a run."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from mlcd.core.errors import MlcdError, UnknownName, UserError, WrongState
from mlcd.core.ledger import Account, Labels, LabelUpdate, Line
from mlcd.core.ledger.account import BrokenBooks
from mlcd.core.ledger.entries import from_json
from mlcd.service.remote.server import Server, ServerLost, run_path

PAGE = 500
NOT_STARTED = ("queued", "refused")
BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)  # backoff between attempts to reconnect: a minute in all
IDLE_POLL_S, MOST_IDLE_POLLS = 2.0, 300  # of a run that is idle although it should continue


class RemoteLedger:
    """A read-only ledger on a server. A run is fetched once, and its new entries by `newer`."""

    def __init__(self, server: Server, page: int = PAGE) -> None:
        """`page`: how many entries or runs are fetched at once."""
        self.server = server
        self._page = page
        self._lines: dict[str, list[Line]] = {}
        self._driven: dict[str, bool] = {}

    def runs(self) -> list[str]:
        """The runs that have started, oldest first."""
        started = [each for each in self._summaries() if each["status"] not in NOT_STARTED]
        with self.server.reading():
            return [str(each["run"]) for each in sorted(started, key=lambda each: str(each["started_at"]))]

    def labels(self) -> dict[str, Labels]:
        """The labels of every run; empty on a server that is too old to have labels."""
        with self.server.reading():
            return {each["run"]: _labels(each) for each in self._summaries() if "tags" in each}

    def label(self, run: str, change: LabelUpdate) -> Labels:
        """Change the labels of a run; return them all."""
        said = {name: value for name, value in asdict(change).items() if value not in (None, ())}
        answer = self.server.send("PATCH", run_path(run, "labels"), said)
        with self.server.reading():
            return _labels(answer)

    def _summaries(self) -> list[dict[str, Any]]:
        """The summaries of all runs, archived ones included."""
        summaries: list[dict[str, Any]] = []
        asked = {"order": "started", "archived": "all", "limit": self._page}  # an older server ignores what is new
        with self.server.reading():
            while page := self.server.get("/runs", **asked, offset=len(summaries))["runs"]:
                summaries += page
                if len(page) < self._page:
                    break
        return summaries

    def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest."""
        if run == "last":
            runs = self.runs()
            if not runs:
                raise UnknownName("run", run, runs)
            return runs[-1]
        if not self._fetched(run):
            raise WrongState(f"run '{run}' is waiting for a worker; it has no entries yet")
        return run

    def lines(self, run: str) -> list[Line]:
        """The entries of a run, in order."""
        lines = list(self._fetched(self.find(run)))
        self._replayed(lines)
        return lines

    def account(self, run: str) -> Account:
        """The account of a run."""
        return self._replayed(self._fetched(self.find(run)))

    def is_driven(self, run: str) -> bool:
        """Whether a worker was driving this run when it was last fetched."""
        self._fetched(run)
        return self._driven[run]

    def check_accepted(self, run: str) -> None:
        """Raise `UserError` with the reason if the run was refused, as for a local run."""
        with self.server.reading():
            summary = self.server.get(run_path(run))["summary"]
            because, status = str(summary["because"]), summary["status"]
        if status == "refused":
            raise UserError(because)

    def last_seq(self, run: str) -> int:
        """The number of the last fetched entry; 0 if there is none."""
        lines = self._lines.get(run)
        return lines[-1].seq if lines else 0

    def newer(self, run: str) -> list[Line]:
        """The entries since the last call."""
        lines = self._lines.setdefault(run, [])
        new: list[Line] = []
        while True:
            answer = self.server.get(run_path(run, "entries"), after=self.last_seq(run), limit=self._page)
            with self.server.reading():
                page = [_line(each) for each in answer["entries"]]
                self._driven[run] = bool(answer["driven"])
            lines += page
            new += page
            if len(page) < self._page:
                return new

    def _fetched(self, run: str) -> list[Line]:
        if run not in self._driven:
            self.newer(run)
        return self._lines[run]

    def _replayed(self, lines: list[Line]) -> Account:
        try:
            return Account.replay((line.entry, line.elapsed_s) for line in lines)
        except BrokenBooks:
            raise self.server.unreadable() from None


def _labels(data: Any) -> Labels:
    return Labels(data["project"], tuple(data["tags"]), data["note"], data["archived"])


def _line(data: Any) -> Line:
    entry, written_at = from_json(json.dumps(data["entry"])), datetime.fromisoformat(data["written_at"])
    return Line(int(data["seq"]), str(data["run"]), written_at, data["elapsed_s"], entry)


class Event(NamedTuple):
    """One server-sent event."""

    kind: str = "message"
    data: str = ""
    id: str = ""


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Parse server-sent events by the HTML standard, without comments and incomplete events."""
    kind, last_id = "", ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data or kind:
                yield Event(kind or "message", "\n".join(data), last_id)
            kind, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                kind = value
            case "data":
                data.append(value)
            case "id":
                last_id = value


def watch(
    ledger: RemoteLedger,
    run: str,
    until: Callable[[bool], bool],
    wait: Callable[[float], None] = time.sleep,
    on_progress: Callable[[str], object] = lambda progress: None,
) -> Iterator[Line]:
    """The new entries of a run as they come, until `until` is true. It is called with whether the run is idle.

    An event stream signals that something is new, and the entries are fetched from the ledger: after a broken
    connection none comes twice, none is missed. `on_progress` gets the progress of live launches, as a JSON list. An
    idle run that is not yet where we wait for it needs a worker: this waits for a while.
    """
    failures = idle = 0
    while True:  # a stream that ends at once: a proxy, or a restart
        last_error: MlcdError = ServerLost(f"{ledger.server.url}: its event streams end at once")
        try:
            for event in _stream(ledger, run):
                if event.kind == "progress":
                    on_progress(_progress(event))
                if event.kind == "end" and not ledger.last_seq(run):
                    ledger.check_accepted(run)
                known = event.id.isdecimal() and int(event.id) <= ledger.last_seq(run)
                if event.kind == "end" or (event.kind == "entry" and not known):
                    failures = 0
                    new = ledger.newer(run)
                    idle = idle if not new else 0
                    yield from new
                    if until(event.kind == "end"):
                        return
                if event.kind == "end":
                    break
            else:
                failures += 1
        except ServerLost as error:
            last_error, failures = error, failures + 1
        if failures > len(BACKOFF_S):
            raise ServerLost(f"{last_error}. Run '{run}' continues there; follow it again with: mlcd attach {run}")
        idle += 1 if not failures else 0
        if idle > MOST_IDLE_POLLS:
            raise WrongState(f"run '{run}' waits, and no worker has taken it; follow it later with: mlcd attach {run}")
        wait(BACKOFF_S[failures - 1] if failures else IDLE_POLL_S)


def _stream(ledger: RemoteLedger, run: str) -> Iterator[Event]:
    with ledger.server.stream(run_path(run, "events"), ledger.last_seq(run)) as lines:
        yield from events(lines)


def _progress(event: Event) -> str:
    """The live launches in an event; an empty list if it is malformed: progress is not essential."""
    with suppress(ValueError, KeyError, TypeError):
        return json.dumps(json.loads(event.data)["progress"])
    return "[]"
