"""The runs of a server, read as those of a ledger's file are: whoever reports on runs need not know where they are."""

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
NOT_BEGUN = ("queued", "refused")


class RemoteLedger:
    """What a ledger can be asked, asked of a server. Nothing is written from here.

    A run is fetched once, and what has come since by `newer`: a list of two hundred runs is two hundred requests, and
    not a thousand.
    """

    path = None

    def __init__(self, server: Server, page: int = PAGE) -> None:
        """`page`: how many entries, or runs, are asked for at once."""
        self.server = server
        self._page = page
        self._lines: dict[str, list[Line]] = {}
        self._driven: dict[str, bool] = {}

    def close(self) -> None:
        """Close the connection."""
        self.server.close()

    def summaries(self) -> list[dict[str, Any]]:
        """All runs as the server lists them, the oldest first; those that wait, too."""
        found: list[dict[str, Any]] = []
        with self.server.reading():
            while page := self.server.get("/runs", order="started", limit=self._page, offset=len(found))["runs"]:
                found += page
                if len(page) < self._page:
                    break
            return sorted(found, key=lambda each: str(each["started_at"]))

    def runs(self) -> list[str]:
        """The runs that have begun, oldest first."""
        return [str(each["run"]) for each in self.summaries() if each["status"] not in NOT_BEGUN]

    def find(self, run: str) -> str:
        """The run of that name; 'last' is the newest."""
        if run == "last":
            runs = self.runs()
            if not runs:
                raise UnknownName("run", run, runs)
            return runs[-1]
        if not self._known(run):
            raise WrongState(f"run '{run}' is waiting for a worker; nothing of it is there yet")
        return run

    def lines(self, run: str) -> list[Line]:
        """The entries of a run, in order."""
        lines = list(self._known(self.find(run)))
        self._replayed(lines)
        return lines

    def account(self, run: str) -> Account:
        """Where a run stands."""
        return self._replayed(self._known(self.find(run)))

    def accounts(self, name: str, most: int) -> Iterator[Account]:
        """Where the runs of jobs of this name stand, the newest first."""
        begun = [each for each in self.summaries() if each["status"] not in NOT_BEGUN and each["job"] == name]
        for each in reversed(begun[-most:]):
            yield self.account(str(each["run"]))

    def owners(self) -> dict[str, tuple[str | None, str | None]]:
        """Whose each run is: a member, and the member's team."""
        return {str(each["run"]): (each["owner"], each["team"]) for each in self.summaries()}

    def is_driven(self, run: str) -> bool:
        """Whether some worker drives this run, as it was when the run was fetched."""
        self._known(run)
        return self._driven[run]

    def driver(self, run: str) -> int | None:
        """0 where some worker drives this run: its process is elsewhere."""
        return 0 if self.is_driven(run) else None

    def check_accepted(self, run: str) -> None:
        """Raise what a run was refused for, if it never began; `UserError`, as it is told of a run on this machine."""
        with self.server.reading():
            summary = self.server.get(run_path(run))["summary"]
            because, status = str(summary["because"]), summary["status"]
        if status == "refused":
            raise UserError(because)

    def seen(self, run: str) -> int:
        """The number of the last entry that is known here; 0 if there is none."""
        known = self._lines.get(run)
        return known[-1].seq if known else 0

    def newer(self, run: str) -> list[Line]:
        """What was written since we looked last."""
        known = self._lines.setdefault(run, [])
        new: list[Line] = []
        while True:
            answer = self.server.get(run_path(run, "entries"), after=self.seen(run), limit=self._page)
            with self.server.reading():
                page = [_line(each) for each in answer["entries"]]
                self._driven[run] = bool(answer["driven"])
            known += page
            new += page
            if len(page) < self._page:
                return new

    def _known(self, run: str) -> list[Line]:
        if run not in self._driven:
            self.newer(run)
        return self._lines[run]

    def _replayed(self, lines: list[Line]) -> Account:
        try:
            return Account.replay((line.entry, line.elapsed_s) for line in lines)
        except BrokenBooks:
            raise self.server.unreadable() from None


def _line(told: Any) -> Line:
    entry = from_json(json.dumps(told["entry"]))
    return Line(
        int(told["seq"]), str(told["run"]), datetime.fromisoformat(told["written_at"]), told["elapsed_s"], entry
    )
