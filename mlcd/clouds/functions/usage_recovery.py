"""Recovers the usage of functions whose caller was killed.

The journal has the start of each call, and its usage if the caller saw its end (`journal.py`). For the others, Lithops
has written start, end and answer of each function to the bucket. On a cloud, functions continue after their caller is
killed: this waits for them, and tells prewarmed ones to end. A function that still has not answered is billed until its
deadline, with the most requests that it may make. On this machine functions were killed with their caller.

The result is stored beside the journal, so that it is computed once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mlcd.clouds.functions import lithops_internals
from mlcd.clouds.functions.call import FINISH_S, Requests, billed_here_s, billed_on_cloud_s
from mlcd.clouds.functions.caller import ENDING_PUTS, GETS, PUTS
from mlcd.clouds.functions.journal import CallRecord, EndRecord, Journal, Records, bill_from
from mlcd.clouds.functions.lithops_internals import Answer
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.worker import NOT_NEEDED
from mlcd.core.errors import BackendError
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.functions.workload import Tariff

USED = "used.json"
MOST_WAIT_S = 120.0
"""How long to wait for functions that still run: a user may be waiting, too."""
POLL_S = 2.0
"""Polling interval of the bucket, where requests are billed: Lithops' own."""
DEADLINE_GRACE_S = 4.0
"""How long after its deadline a function may write its end."""
OpenBucket = Callable[[str], Any]
"""Lithops' client of the storage with that name."""


@dataclass(frozen=True)
class Part:
    """A part of a launch's usage. `seconds`: how long the storage's server was used; None: not at all."""

    bill: Bill
    memory_mb: int = 0
    storage: str = ""
    seconds: float | None = None

    def usd(self, tariff: Tariff) -> float:
        """Dollars of this part."""
        meter = Meter(tariff, Allocation(1, self.memory_mb, self.storage), 0)
        return meter.functions_usd(self.bill) if self.seconds is None else meter.usd(self.bill, self.seconds)


@dataclass(frozen=True)
class RecoveredUsage:
    """The usage of a launch. `known`: exactly, not as an upper bound.

    `ended_at`: the last end of its functions, or their deadline; None if none was called.
    """

    parts: tuple[Part, ...]
    known: bool
    ended_at: float | None

    def usd(self, tariff: Tariff) -> float:
        """Dollars of all parts."""
        return math.fsum(part.usd(tariff) for part in self.parts)


@dataclass(frozen=True)
class CallsOfFolder:
    """The calls of one launch folder. `taken_over`: prewarmed by another launch, which was billed for a part.

    `ended_at`: the end of its processes on this machine; None on a cloud.
    """

    journal: Journal
    taken_over: bool = False
    ended_at: float | None = None

    @property
    def is_local(self) -> bool:
        """Whether its functions were processes of this machine."""
        return self.ended_at is not None


@dataclass(frozen=True)
class UsageRecovery:
    """Recovers usage from journals and buckets. `now`: Unix time."""

    open_bucket: OpenBucket
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def used(self, folder: Path, shares: Sequence[CallsOfFolder]) -> RecoveredUsage | None:
        """The usage of the launch with this folder; None if its records are lost."""
        if (before := stored_usage(folder)) is not None:
            return before
        records = [share.journal.read() for share in shares]
        if any(each is None or each.deploying for each in records):
            return None
        search = _Search(self, Journal(folder), self.now() + MOST_WAIT_S)
        try:
            pairs = [(share, each) for share, each in zip(shares, records, strict=True) if each is not None]
            used = search.usage(pairs)
        except BackendError:  # the bucket cannot be read
            return None
        _store(folder, used)
        return used


@dataclass
class _Search:
    """A search for the usage of a launch until `give_up_at`. `journal`: counts the requests of the search itself."""

    recovery: UsageRecovery
    journal: Journal
    give_up_at: float

    def __post_init__(self) -> None:
        self._bucket = cache(self._open)

    def usage(self, shares: Sequence[tuple[CallsOfFolder, Records]]) -> RecoveredUsage:
        """The usage of all these calls. Requests are added last, since the search makes some, too."""
        for share, records in shares:
            for called in records.open:
                self._dismiss(share, called)
        parts, known, ends = list[Part](), True, list[float]()
        for share, records in shares:
            for job, called in records.calls.items():
                recorded = records.ended.get(job)
                ended, is_known = (recorded, True) if recorded is not None else self._find_end(share, called, records)
                there = Requests() if share.is_local else Requests(PUTS * called.calls, GETS * called.calls)
                bill, seconds = replace(ended.bill, bucket=there), max(0.0, ended.at - called.at)
                parts.append(Part(bill, called.memory_mb, called.storage, seconds))
                known = known and is_known
                ends.append(ended.at)
            self._forget(records.open)
        parts += [part for share, records in shares for part in _other_usage(share, records)]
        return RecoveredUsage(tuple(parts), known, max(ends, default=None))

    def _find_end(self, share: CallsOfFolder, called: CallRecord, records: Records) -> tuple[EndRecord, bool]:
        """The usage of a call without a recorded end, and whether it is known exactly.

        A function without a report counts with the most requests to the storage that it may have made.
        """
        deployed, answers = records.deployed[called.job], self._answers(share, called)
        bill = Bill(called.calls + len(deployed), deployed_gb_s=sum(each.gb_s for each in deployed))
        most, known, last_at = math.ceil(called.requests_most / called.calls), True, 0.0
        for answer in (answers.get(number) for number in range(called.calls)):
            report = answer.report if answer is not None else None
            if share.ended_at is not None:
                ended_at, used_s = share.ended_at, billed_here_s(answer, called.at, share.ended_at)
            else:
                latest = max(self.recovery.now(), called.until)
                ended_at = latest if answer is None or answer.ended_at is None else answer.ended_at + FINISH_S
                used_s = billed_on_cloud_s(answer, called.at, latest)
                known = known and answer is not None
            bill.function_s += used_s
            bill.requests += most if report is None else report.get("requests", 0)
            bill.puts += most if report is None else report.get("puts", 0)
            known = known and not (report is None and most)
            last_at = max(last_at, ended_at)
        if known:  # before it is removed from the bucket
            share.journal.ended(called.job, bill, last_at)
        return EndRecord(bill, last_at), known

    def _answers(self, share: CallsOfFolder, called: CallRecord) -> dict[int, Answer]:
        """The answers of these functions, by their number. On a cloud, waits for them."""
        bucket, answers = self._bucket(called.backend), dict[int, Answer]()
        give_up_at = 0.0 if share.is_local else min(self.give_up_at, called.until + DEADLINE_GRACE_S)
        while True:
            with lithops_internals.bucket_errors():
                keys = lithops_internals.status_keys(bucket, called.bucket, called.executor, called.job)
                for number in keys.keys() - answers.keys():
                    answers[number] = lithops_internals.parse_answer(bucket.get_object(called.bucket, keys[number]))
            if len(answers) >= called.calls or self.recovery.now() >= give_up_at:
                return answers
            self.recovery.wait(POLL_S)

    def _dismiss(self, share: CallsOfFolder, called: CallRecord) -> None:
        """Tell prewarmed functions to end: the launch that they wait for will not come."""
        if share.is_local or not called.gate:
            return
        bucket = self._bucket(called.backend)
        with lithops_internals.bucket_errors():
            if called.gate not in bucket.list_keys(called.bucket, called.gate):
                bucket.put_object(called.bucket, called.gate, NOT_NEEDED)

    def _forget(self, calls: Iterable[CallRecord]) -> None:
        """Delete Lithops' objects of these calls from the bucket."""
        for executor, called in {each.executor: each for each in calls}.items():
            bucket = self._bucket(called.backend)
            with lithops_internals.bucket_errors():
                lithops_internals.remove(bucket, called.bucket, executor)

    def _open(self, backend: str) -> Any:
        with lithops_internals.bucket_errors():
            bucket = self.recovery.open_bucket(backend)
        lithops_internals.count_requests(bucket, self.journal.requested)
        return bucket


def stored_usage(folder: Path) -> RecoveredUsage | None:
    """The stored usage of the launch with this folder; None if it was not recovered yet."""
    try:
        stored = json.loads((folder / USED).read_text(encoding="utf-8"))
        parts = tuple(Part(**{**part, "bill": bill_from(part["bill"])}) for part in stored["parts"])
        return RecoveredUsage(parts, bool(stored["known"]), stored["ended_at"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _store(folder: Path, used: RecoveredUsage) -> None:
    partial = folder / f"{USED}.new"
    partial.write_text(json.dumps(asdict(used)), encoding="utf-8")
    partial.replace(folder / USED)


def _other_usage(share: CallsOfFolder, records: Records) -> list[Part]:
    """Deployment calls and requests of this process, minus what was billed to another launch."""
    gb_s = sum(each.gb_s for each in records.waiting)
    here = Part(Bill(len(records.waiting), deployed_gb_s=gb_s, bucket=share.journal.requests()))
    paid, called = records.paid, next(iter(records.calls.values()), None)
    if not share.taken_over or paid is None or called is None:
        return [here]
    bucket = Requests(ENDING_PUTS - paid.bucket.puts, -paid.bucket.gets)  # that launch also paid for the clean-up
    if share.is_local:
        bucket = Requests()
    less = Bill(-paid.calls, -paid.function_s, deployed_gb_s=-paid.deployed_gb_s, bucket=bucket)
    return [here, Part(less, called.memory_mb, called.storage)]
