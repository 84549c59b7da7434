"""The runs of a server with the interface of a local ledger, so that reports work with both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.core.ledger import Account, Line
from mlcd.core.ledger.account import BrokenBooks
from mlcd.core.ledger.entries import from_json
from mlcd.service.remote.server import Server, run_path

PAGE = 500
NOT_STARTED = ("queued", "refused")


class RemoteLedger:
    """A read-only ledger on a server.

    A run is fetched once, and its new entries by `newer`: so a list of two hundred runs takes two hundred requests, not
    a thousand.
    """

    path = None

    def __init__(self, server: Server, page: int = PAGE) -> None:
        """`page`: how many entries or runs are fetched at once."""
        self.server = server
        self._page = page
        self._lines: dict[str, list[Line]] = {}
        self._driven: dict[str, bool] = {}

    def close(self) -> None:
        """Close the connection."""
        self.server.close()

    def summaries(self) -> list[dict[str, Any]]:
        """All runs as the server lists them, the oldest first, including queued ones."""
        summaries: list[dict[str, Any]] = []
        with self.server.reading():
            while page := self.server.get("/runs", order="started", limit=self._page, offset=len(summaries))["runs"]:
                summaries += page
                if len(page) < self._page:
                    break
            return sorted(summaries, key=lambda each: str(each["started_at"]))

    def runs(self) -> list[str]:
        """The runs that have started, oldest first."""
        return [str(each["run"]) for each in self.summaries() if each["status"] not in NOT_STARTED]

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

    def accounts(self, name: str, most: int) -> Iterator[Account]:
        """The accounts of runs of jobs with this name, the newest first."""
        begun = [each for each in self.summaries() if each["status"] not in NOT_STARTED and each["job"] == name]
        for each in reversed(begun[-most:]):
            yield self.account(str(each["run"]))

    def owners(self) -> dict[str, tuple[str | None, str | None]]:
        """The owner of each run, and the owner's team."""
        return {str(each["run"]): (each["owner"], each["team"]) for each in self.summaries()}

    def is_driven(self, run: str) -> bool:
        """Whether a worker was driving this run when it was last fetched."""
        self._fetched(run)
        return self._driven[run]

    def driver(self, run: str) -> int | None:
        """0 if a worker drives this run: its process is on another machine."""
        return 0 if self.is_driven(run) else None

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


def _line(data: Any) -> Line:
    entry = from_json(json.dumps(data["entry"]))
    return Line(
        int(data["seq"]), str(data["run"]), datetime.fromisoformat(data["written_at"]), data["elapsed_s"], entry
    )
