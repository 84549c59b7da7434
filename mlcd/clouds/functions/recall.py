"""Finds out what functions have used whose caller was killed.

Of each call the journal says when it was made, and what it used if its caller saw its end (`journal.py`). Of the others
Lithops has noted in the bucket when they began and ended, and what they answered. On a cloud they run on: they are
waited for, and those that wait to be taken over are told to end. One that has not answered then is booked until its
deadline, with the most requests that it may make. On this machine they were ended with their caller.

What was found out is kept beside the journal, so that it is found out once.
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
from mlcd.clouds.functions.called import FINISH_S, Requests, used_here_s, used_there_s
from mlcd.clouds.functions.calls import ENDING_PUTS, GETS, PUTS
from mlcd.clouds.functions.journal import Called, Ended, Journal, Records, bill_in
from mlcd.clouds.functions.lithops_internals import Answer
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.worker import NOT_NEEDED
from mlcd.core.errors import BackendError
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.functions.workload import Tariff

USED = "used.json"
PATIENCE_S = 120.0
"""So long functions are waited for that still run: a person may be waiting, too."""
POLL_S = 2.0
"""Between two looks into the bucket, which are billed; Lithops' own interval."""
LATE_S = 4.0
"""After its deadline a function may take so long to note its end."""
OpenBucket = Callable[[str], Any]
"""Lithops' client of the storage with that name."""


@dataclass(frozen=True)
class Part:
    """A part of what a launch has used. `seconds`: of the server that functions meet at; None: not at all."""

    bill: Bill
    memory_mb: int = 0
    storage: str = ""
    seconds: float | None = None

    def usd(self, tariff: Tariff) -> float:
        """What it costs."""
        meter = Meter(tariff, Allocation(1, self.memory_mb, self.storage), 0)
        return meter.functions_usd(self.bill) if self.seconds is None else meter.usd(self.bill, self.seconds)


@dataclass(frozen=True)
class Used:
    """What a launch has used. `ended_at`: the last end of its functions, or deadline; None where none was called."""

    parts: tuple[Part, ...]
    known: bool
    ended_at: float | None

    def usd(self, tariff: Tariff) -> float:
        """What all of it costs."""
        return math.fsum(part.usd(tariff) for part in self.parts)


@dataclass(frozen=True)
class Share:
    """The calls of one folder, and which part of them the launch pays. `ended_at`: of processes on this machine."""

    journal: Journal
    taken_over: bool = False
    ended_at: float | None = None

    @property
    def is_local(self) -> bool:
        """Whether its functions were processes of this machine."""
        return self.ended_at is not None


@dataclass(frozen=True)
class Recall:
    """Finds it out. `wait`, `now`: Unix time."""

    open_bucket: OpenBucket
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def used(self, folder: Path, shares: Sequence[Share]) -> Used | None:
        """What the launch with this folder has used; None where its records are lost."""
        if (before := used_in(folder)) is not None:
            return before
        records = [share.journal.read() for share in shares]
        if any(each is None or each.deploying for each in records):
            return None
        looking = _Looking(self, Journal(folder), self.now() + PATIENCE_S)
        try:
            found = looking.at([(share, each) for share, each in zip(shares, records, strict=True) if each is not None])
        except BackendError:  # what is in the bucket cannot be read
            return None
        _store(folder, found)
        return found


@dataclass
class _Looking:
    """One look for what a launch has used. `journal`: where its own requests are noted. It is given up at a time."""

    recall: Recall
    journal: Journal
    give_up_at: float

    def __post_init__(self) -> None:
        self._bucket = cache(self._open)

    def at(self, shares: Sequence[tuple[Share, Records]]) -> Used:
        """Everything in these. The requests come last: looking makes some, too."""
        for share, records in shares:
            for called in records.open:
                self._dismiss(share, called)
        parts, known, ends = list[Part](), True, list[float]()
        for share, records in shares:
            for job, called in records.calls.items():
                seen = records.ended.get(job)
                ended, is_known = (seen, True) if seen is not None else self._found(share, called, records)
                there = Requests() if share.is_local else Requests(PUTS * called.calls, GETS * called.calls)
                bill, seconds = replace(ended.bill, bucket=there), max(0.0, ended.at - called.at)
                parts.append(Part(bill, called.memory_mb, called.storage, seconds))
                known = known and is_known
                ends.append(ended.at)
            self._forget(records.open)
        parts += [part for share, records in shares for part in _besides(share, records)]
        return Used(tuple(parts), known, max(ends, default=None))

    def _found(self, share: Share, called: Called, records: Records) -> tuple[Ended, bool]:
        """What functions have used whose end their caller did not see, and whether all of it is known.

        What one has asked of the storage that tells nothing may have been the most.
        """
        deployed, answers = records.deployed[called.job], self._answers(share, called)
        bill = Bill(called.calls + len(deployed), deployed_gb_s=sum(each.gb_s for each in deployed))
        most, known, last_at = math.ceil(called.requests_most / called.calls), True, 0.0
        for answer in (answers.get(number) for number in range(called.calls)):
            report = answer.report if answer is not None else None
            if share.ended_at is not None:
                ended_at, used_s = share.ended_at, used_here_s(answer, called.at, share.ended_at)
            else:
                latest = max(self.recall.now(), called.until)
                ended_at = latest if answer is None or answer.ended_at is None else answer.ended_at + FINISH_S
                used_s = used_there_s(answer, called.at, latest)
                known = known and answer is not None
            bill.function_s += used_s
            bill.requests += most if report is None else report.get("requests", 0)
            bill.puts += most if report is None else report.get("puts", 0)
            known = known and not (report is None and most)
            last_at = max(last_at, ended_at)
        if known:  # before it is removed from the bucket
            share.journal.ended(called.job, bill, last_at)
        return Ended(bill, last_at), known

    def _answers(self, share: Share, called: Called) -> dict[int, Answer]:
        """Of these functions, by their number. On a cloud they are waited for."""
        bucket, answers = self._bucket(called.backend), dict[int, Answer]()
        give_up_at = 0.0 if share.is_local else min(self.give_up_at, called.until + LATE_S)
        while True:
            with lithops_internals.bucket_errors():
                keys = lithops_internals.statuses(bucket, called.bucket, called.executor, called.job)
                for number in keys.keys() - answers.keys():
                    answers[number] = lithops_internals.answer_in(bucket.get_object(called.bucket, keys[number]))
            if len(answers) >= called.calls or self.recall.now() >= give_up_at:
                return answers
            self.recall.wait(POLL_S)

    def _dismiss(self, share: Share, called: Called) -> None:
        """Tell functions to end that wait for a launch which will not come."""
        if share.is_local or not called.gate:
            return
        bucket = self._bucket(called.backend)
        with lithops_internals.bucket_errors():
            if called.gate not in bucket.list_keys(called.bucket, called.gate):
                bucket.put_object(called.bucket, called.gate, NOT_NEEDED)

    def _forget(self, calls: Iterable[Called]) -> None:
        """Remove what Lithops has left in the bucket."""
        for executor, called in {each.executor: each for each in calls}.items():
            bucket = self._bucket(called.backend)
            with lithops_internals.bucket_errors():
                lithops_internals.remove(bucket, called.bucket, executor)

    def _open(self, backend: str) -> Any:
        with lithops_internals.bucket_errors():
            bucket = self.recall.open_bucket(backend)
        lithops_internals.count_requests(bucket, self.journal.asked)
        return bucket


def used_in(folder: Path) -> Used | None:
    """What was found out of the launch with this folder; None where nothing was yet."""
    try:
        stored = json.loads((folder / USED).read_text(encoding="utf-8"))
        parts = tuple(Part(**{**part, "bill": bill_in(part["bill"])}) for part in stored["parts"])
        return Used(parts, bool(stored["known"]), stored["ended_at"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _store(folder: Path, used: Used) -> None:
    partial = folder / f"{USED}.new"
    partial.write_text(json.dumps(asdict(used)), encoding="utf-8")
    partial.replace(folder / USED)


def _besides(share: Share, records: Records) -> list[Part]:
    """What was used besides functions, less what another launch has paid of all this."""
    gb_s = sum(each.gb_s for each in records.waiting)
    here = Part(Bill(len(records.waiting), deployed_gb_s=gb_s, bucket=share.journal.requests()))
    paid, called = records.paid, next(iter(records.calls.values()), None)
    if not share.taken_over or paid is None or called is None:
        return [here]
    bucket = Requests(ENDING_PUTS - paid.bucket.puts, -paid.bucket.gets)  # it has paid for the end, too
    if share.is_local:
        bucket = Requests()
    less = Bill(-paid.calls, -paid.function_s, deployed_gb_s=-paid.deployed_gb_s, bucket=bucket)
    return [here, Part(less, called.memory_mb, called.storage)]
