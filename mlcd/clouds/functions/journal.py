"""The journal of a launch's calls on this machine, from which its usage can be found out after a crash.

`calls.jsonl`   a line for each event: functions are about to be called, have ended, were refused, ...
`asked`         a letter for each request of this process to the bucket, written before it is sent

A line is written before the call is made, and without a buffer: a killed process leaves whole lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mlcd.clouds.functions.call import Requests
from mlcd.clouds.functions.lithops_internals import Deployed
from mlcd.clouds.functions.meter import Bill

CALLS, REQUESTS = "calls.jsonl", "asked"
LETTERS = {"put": b"p", "get": b"g"}


@dataclass(frozen=True)
class CallRecord:
    """A call of several functions. `job`: Lithops' name of the call within its executor.

    `at`, `until`: Unix time. `requests_most`: to the storage by which they exchange gradients; 0 if requests are free.
    `gate`: the key where they wait to be taken over. `backend`, `bucket`: where Lithops stores their answers.
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


class EndRecord(NamedTuple):
    """The usage of a call that has ended."""

    bill: Bill
    at: float


@dataclass
class Records:
    """The content of a journal. `deployed`: for each job, the calls that created its function."""

    calls: dict[str, CallRecord] = field(default_factory=dict)
    ended: dict[str, EndRecord] = field(default_factory=dict)
    deployed: dict[str, list[Deployed]] = field(default_factory=dict)
    waiting: list[Deployed] = field(default_factory=list)
    """Deployment calls of a function that has not been called yet."""
    deploying: bool = False
    paid: Bill | None = None
    """The part of all this that was billed to another launch."""

    @property
    def open(self) -> list[CallRecord]:
        """Calls without a recorded end."""
        return [each for job, each in self.calls.items() if job not in self.ended]

    def add(self, line: dict[str, Any]) -> None:
        """Apply one line."""
        what, job = line.pop("what"), line.get("job", "")
        if what == "called":
            self.calls[job], self.deployed[job] = CallRecord(**line), self.waiting
            self.waiting = []
        elif what == "refused":
            self.waiting = self.deployed.pop(job)
            del self.calls[job]
        elif what == "ended":
            self.ended[job] = EndRecord(bill_from(line["bill"]), line["at"])
        elif what == "deploying":
            self.deploying = True
        elif what == "deployed":
            self.deploying = False
            self.waiting = [*self.waiting, *(Deployed(*each) for each in line["calls"])]
        elif what == "paid":
            self.paid = bill_from(line["bill"])


def bill_from(stored: dict[str, Any]) -> Bill:
    """The bill of stored data."""
    return Bill(**{**stored, "bucket": Requests(*stored["bucket"])})


@dataclass(frozen=True)
class Journal:
    """The journal of the launch with this folder."""

    folder: Path

    def begin(self) -> None:
        """Start an empty journal: an earlier launch of another ledger may have had the same name."""
        (self.folder / CALLS).write_bytes(b"")
        (self.folder / REQUESTS).unlink(missing_ok=True)

    def called(self, called: CallRecord) -> None:
        """Functions are about to be called."""
        self._write("called", **asdict(called))

    def refused(self, job: str) -> None:
        """The platform did not take that call."""
        self._write("refused", job=job)

    def ended(self, job: str, bill: Bill, at: float) -> None:
        """The call has ended, with this usage; requests to the bucket are counted elsewhere."""
        self._write("ended", job=job, bill=asdict(replace(bill, bucket=Requests())), at=at)

    def deploying(self) -> None:
        """The function is about to be created, if it does not exist."""
        self._write("deploying")

    def deployed(self, calls: Sequence[Deployed]) -> None:
        """The function exists; these calls were needed to create it."""
        self._write("deployed", calls=calls)

    def paid(self, bill: Bill) -> None:
        """This part of the usage is billed to the launch that prewarmed these functions."""
        self._write("paid", bill=asdict(bill))

    def requested(self, kind: str) -> None:
        """A request to the bucket is about to be sent: 'put' (or list), or 'get'."""
        with suppress(OSError), (self.folder / REQUESTS).open("ab", buffering=0) as file:
            file.write(LETTERS[kind])

    def read(self) -> Records | None:
        """The records; None if there is no journal, or it is damaged."""
        records = Records()
        try:
            for line in (self.folder / CALLS).read_text(encoding="utf-8").splitlines():
                records.add(json.loads(line))
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return records

    def requests(self) -> Requests:
        """Requests to the bucket so far, of all processes that wrote this journal."""
        letters = (self.folder / REQUESTS).read_bytes() if (self.folder / REQUESTS).exists() else b""
        return Requests(letters.count(LETTERS["put"]), letters.count(LETTERS["get"]))

    def _write(self, what: str, **facts: object) -> None:
        line = json.dumps({"what": what, **facts}) + "\n"
        with (self.folder / CALLS).open("ab", buffering=0) as file:
            file.write(line.encode())
