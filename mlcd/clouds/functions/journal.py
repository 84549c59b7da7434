"""What is kept on this machine about the calls of a launch, so that its use can be found out after a crash.

`calls.jsonl`   a line for each thing that happened: functions are about to be called, have ended, were refused, ...
`asked`         a letter for each request of this process to the bucket, written before it is sent

A line is on its way to the disk before anything is called: a process that is killed leaves whole lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mlcd.clouds.functions.called import Requests
from mlcd.clouds.functions.lithops_internals import Deployed
from mlcd.clouds.functions.meter import Bill

CALLS, ASKED = "calls.jsonl", "asked"
LETTERS = {"put": b"p", "get": b"g"}


@dataclass(frozen=True)
class Called:
    """Functions that are called together. `job`: Lithops' name of the call, among those of an executor.

    `at`, `until`: in Unix time. `requests_most`: to the storage that they meet at; 0 where these cost nothing. `gate`:
    where they wait to be taken over. `backend`, `bucket`: where Lithops keeps what they answer.
    """

    executor: str
    job: str
    calls: int
    at: float
    until: float
    memory_mb: int
    storage: str
    requests_most: int = 0
    gate: str = ""
    backend: str = ""
    bucket: str = ""


class Ended(NamedTuple):
    """What functions that were called together have used, as their caller saw it."""

    bill: Bill
    at: float


@dataclass
class Records:
    """A journal, read. `deployed`: the calls that it took to create the function before each call, by its job."""

    calls: dict[str, Called] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    deployed: dict[str, list[Deployed]] = field(default_factory=dict)
    waiting: list[Deployed] = field(default_factory=list)
    """Those of a function that has not been called yet."""
    deploying: bool = False
    paid: Bill | None = None
    """What another launch has paid of all this."""

    @property
    def open(self) -> list[Called]:
        """Functions whose end was not seen."""
        return [each for job, each in self.calls.items() if job not in self.ended]

    def add(self, line: dict[str, Any]) -> None:
        """Go on by one line."""
        what, job = line.pop("what"), line.get("job", "")
        if what == "called":
            self.calls[job], self.deployed[job] = Called(**line), self.waiting
            self.waiting = []
        elif what == "refused":
            self.waiting = self.deployed.pop(job)
            del self.calls[job]
        elif what == "ended":
            self.ended[job] = Ended(bill_in(line["bill"]), line["at"])
        elif what == "deploying":
            self.deploying = True
        elif what == "deployed":
            self.deploying = False
            self.waiting = [*self.waiting, *(Deployed(*each) for each in line["calls"])]
        elif what == "paid":
            self.paid = bill_in(line["bill"])


def bill_in(stored: dict[str, Any]) -> Bill:
    """A bill, as it was before it was stored."""
    return Bill(**{**stored, "bucket": Requests(*stored["bucket"])})


@dataclass(frozen=True)
class Journal:
    """The journal of the launch with this folder."""

    folder: Path

    def begin(self) -> None:
        """Begin an empty one: an earlier launch may have had this name, in another ledger."""
        (self.folder / CALLS).write_bytes(b"")
        (self.folder / ASKED).unlink(missing_ok=True)

    def called(self, called: Called) -> None:
        """Functions are about to be called."""
        self._write("called", **asdict(called))

    def refused(self, job: str) -> None:
        """The platform did not take that call."""
        self._write("refused", job=job)

    def ended(self, job: str, bill: Bill, at: float) -> None:
        """They are over, and this is what they used; requests to the bucket are counted elsewhere."""
        self._write("ended", job=job, bill=asdict(replace(bill, bucket=Requests())), at=at)

    def deploying(self) -> None:
        """The function is about to be created, if need be."""
        self._write("deploying")

    def deployed(self, calls: Sequence[Deployed]) -> None:
        """It is there, and took these calls."""
        self._write("deployed", calls=calls)

    def paid(self, bill: Bill) -> None:
        """So much of what these functions used is paid by the launch that called them ahead."""
        self._write("paid", bill=asdict(bill))

    def asked(self, kind: str) -> None:
        """A request to the bucket is about to be sent: to put (or list), or to get."""
        with suppress(OSError), (self.folder / ASKED).open("ab", buffering=0) as file:
            file.write(LETTERS[kind])

    def read(self) -> Records | None:
        """What has happened; None where that is lost: there is no journal, or it is damaged."""
        records = Records()
        try:
            for line in (self.folder / CALLS).read_text(encoding="utf-8").splitlines():
                records.add(json.loads(line))
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return records

    def requests(self) -> Requests:
        """Requests to the bucket so far, of all processes that have this journal."""
        asked = (self.folder / ASKED).read_bytes() if (self.folder / ASKED).exists() else b""
        return Requests(asked.count(LETTERS["put"]), asked.count(LETTERS["get"]))

    def _write(self, what: str, **facts: object) -> None:
        line = json.dumps({"what": what, **facts}) + "\n"
        with (self.folder / CALLS).open("ab", buffering=0) as file:
            file.write(line.encode())
