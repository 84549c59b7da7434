"""A call of several functions at once: their answers and billed time, on this machine and on a cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mlcd.clouds.functions import lithops_internals
from mlcd.clouds.functions.lithops_internals import Answer, Deployed

ANSWER_GRACE_S = 1.0
"""A process may have answered just before it ended: wait so long for that answer."""
DEADLINE = "functions-until"
"""File of a launch on a cloud."""
FINISH_S = 0.1
"""On a cloud, the time from the end that Lithops records to the end of the call: it stores its record in between."""


class Requests(NamedTuple):
    """Counts of requests to a bucket: puts (with lists), and gets. Deletes are free."""

    puts: int = 0
    gets: int = 0

    def plus(self, other: Requests) -> Requests:
        """The sum of both."""
        return Requests(self.puts + other.puts, self.gets + other.gets)


class Call:
    """Functions that were called together. `gone`: why a function cannot answer any more; empty if it can."""

    deployed: Sequence[Deployed] = ()
    job: str = ""
    """Lithops' name of the call within its executor."""

    def __init__(self, futures: list[Any], bucket: Any, gone: Callable[[Any], str]) -> None:
        self.futures = futures
        self._bucket, self._has_died = bucket, gone
        self._answers: dict[int, Answer] = {}
        self._deadlines_s: dict[int, float] = {}

    def answers(self) -> list[Answer | None]:
        """The answer of each function; None for those that still run."""
        for number, future in enumerate(self.futures):
            if number in self._answers:
                continue
            if future.ready or future.success or future.done:
                self._answers[number] = lithops_internals.answer_of(future, self._bucket)
            elif (why := self._has_died(future)) and time.monotonic() > self._deadlines_s.setdefault(
                number, time.monotonic() + ANSWER_GRACE_S
            ):
                self._answers[number] = Answer(None, f"RuntimeError: {why}", None, None)
        return [self._answers.get(number) for number in range(len(self.futures))]

    def billed_s(self, number: int, answer: Answer | None, now: float, *, abandoned: bool = True) -> float:
        """Seconds that a function is billed for.

        `abandoned`: a function without an answer is not waited for any longer; else it is billed until now.
        """
        began_at = lithops_internals.began_at(self.futures[number]) if answer is None else None
        return billed_here_s(answer, began_at, now)

    def bucket_requests(self) -> Requests:
        """Requests to the bucket since this was last called; none on this machine, where the bucket is a folder."""
        return Requests()


class CloudCall(Call):
    """Functions on a cloud. Their billed time includes loading code, and Lithops' own work.

    A cold function is billed from the start of its process, a warm one from the call. A function that has not answered
    may run, and is billed, until its deadline: it cannot be killed.
    """

    def __init__(
        self,
        futures: list[Any],
        bucket: Any,
        until: float,
        deployed: Sequence[Deployed],
        requests_here: Callable[[], tuple[int, int]],
        requests_of_functions: Requests,
        refused: Callable[[Any], str] = lambda future: "",
    ) -> None:
        super().__init__(futures, bucket, refused)
        self._called_at, self._until, self.deployed = time.time(), until, deployed
        self._requests_here, self._requests_of_functions = requests_here, requests_of_functions

    def bucket_requests(self) -> Requests:
        """Requests of this process since the last call; and of its functions, the first time."""
        requests_of_functions, self._requests_of_functions = self._requests_of_functions, Requests()
        return requests_of_functions.plus(Requests(*self._requests_here()))

    def billed_s(self, number: int, answer: Answer | None, now: float, *, abandoned: bool = True) -> float:
        """The most seconds that a function is billed for."""
        latest = max(now, self._until) if answer is None and abandoned else now
        return billed_on_cloud_s(answer, self._called_at, latest)


def billed_here_s(answer: Answer | None, began_at: float | None, now: float) -> float:
    """On this machine: since a function reports to be up, else by Lithops' time, else since `began_at`, if known."""
    report = (answer.report if answer is not None else None) or {}
    began_at = report.get("up_at") or (answer.began_at if answer is not None else began_at)
    ended_at = report.get("ended_at") or (answer.ended_at if answer is not None else None) or now
    return max(0.0, ended_at - began_at) if began_at is not None else 0.0


def billed_on_cloud_s(answer: Answer | None, called_at: float, now: float) -> float:
    """On a cloud: from the start of a function's process, or its call; until now if it has not answered."""
    if answer is None:
        return now - called_at
    process_at = float((answer.report or {}).get("process_at", 0.0))
    began_at = max(process_at, answer.submitted_at or called_at)
    return max(0.0, (answer.ended_at or now) + FINISH_S - began_at)


def record_deadline(folder: Path, until: float) -> None:
    """Store the time until which functions on a cloud may run, for the time after a crash."""
    latest = max(until, deadline_in(folder) or 0.0)
    partial = folder / f"{DEADLINE}.new"
    partial.write_text(repr(latest), encoding="utf-8")
    partial.replace(folder / DEADLINE)


def deadline_in(folder: Path) -> float | None:
    """The time until which functions of this launch may run; None if none was called."""
    try:
        return float((folder / DEADLINE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
