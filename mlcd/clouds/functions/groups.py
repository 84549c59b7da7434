"""A group of functions that train together: called together, polled, and retried together when one of them fails.

A function that dies, raises or times out, or a lost storage, fails the whole attempt: the other functions are ended,
and all are called again as a new group that shares nothing with the old one. Every attempt is billed. If the job's own
code raises the same error twice, there is no third attempt. A straggler is a group that takes `STRAGGLER` times the
median of earlier groups on the same allocation.

Prewarmed functions are those of the next allocation, called while the last epoch of the current one still runs.
The delayed restart of Wu et al. (CE-scaling, IPDPS 2023), section III-D: they start and read their part of the data
while the functions of the old allocation are still training, then wait at a gate: an object in the bucket that names
the model to continue from. The next launch takes them over and opens the gate. If it does not, they are ended with the
next launch or with MLCD, and on any platform by their own timeout. They are called as late as possible:

    x = max(0, E - A)    after the running epoch was called; E: seconds of such an epoch, A: until they are ready

What they use until the running launch ends is billed to that launch, the rest to the one that takes them over.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from mlcd.clouds.frameworks import diagnose
from mlcd.clouds.frameworks.failures import last_lines
from mlcd.clouds.functions.bucket import Models
from mlcd.clouds.functions.call import Call
from mlcd.clouds.functions.caller import Caller, CallRefused
from mlcd.clouds.functions.lithops_internals import Answer
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.orders import Order, Orders, Report
from mlcd.clouds.functions.worker import NOT_NEEDED, train_epoch
from mlcd.core.measurement import Outcome
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation

Function = Callable[..., Report]
OrdersOf = Callable[[int, float, int | None], list[Order]]
"""Takes the attempt's number, its deadline (Unix time) and its most requests."""

STRAGGLER = 4.0
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 10.0, 900.0
"""Bounds of an attempt's timeout. The upper one is Lambda's."""
MIN_ATTEMPT_S = 1.0
"""Shortest useful attempt."""
READY = "ready"
"""The name in `Durations` for the time until functions have started and loaded their data."""
WAITS_S = 60.0
"""Timeout of prewarmed functions, after the expected end of the running epoch."""
_LITHOPS_ERROR = re.compile(r"\('HANDLER', ['\"](.*)['\"]\)")
"""Lithops' wrapping of an error about a function's process."""


class GroupFailed(Exception):
    """All attempts have failed: the outcome, the reason in one line, and the end of the output."""

    def __init__(self, outcome: Outcome, why: str, log: str) -> None:
        super().__init__(why)
        self.outcome, self.log = outcome, log


@dataclass
class Durations:
    """How long groups took so far, by allocation, and the timeout of the next one, at least `min_timeout_s`."""

    min_timeout_s: float = MIN_TIMEOUT_S
    recorded: dict[tuple[str, Allocation], list[float]] = field(default_factory=dict)

    def record(self, function_name: str, allocation: Allocation, seconds: float) -> None:
        """Record a group that succeeded."""
        self.recorded.setdefault((function_name, allocation), []).append(seconds)

    def expected_s(self, function_name: str, allocation: Allocation) -> float | None:
        """The median; None before the first one."""
        earlier = self.recorded.get((function_name, allocation))
        return median(earlier) if earlier else None

    def timeout_s(self, function_name: str, allocation: Allocation) -> float:
        """After this time a group counts as a straggler."""
        expected_s = self.expected_s(function_name, allocation) or math.inf
        return min(MAX_TIMEOUT_S, max(self.min_timeout_s, STRAGGLER * expected_s))


@dataclass(frozen=True)
class Workers:
    """The functions of a launch: their caller, orders and models, and the durations of groups so far."""

    caller: Caller
    orders: Orders
    models: Models
    durations: Durations

    def epoch(self, meter: Meter, trial: int, epoch: int, gate: str = "", waits_s: float = 0.0) -> Group:
        """The group of an epoch. With a gate, the functions of the first attempt wait there for the model."""
        orders, models, waits_until = self.orders, self.models, time.time() + waits_s

        def orders_of(attempt: int, until: float, requests: int | None) -> list[Order]:
            if gate and attempt == 0:
                return orders.waiting(trial, epoch, gate, waits_until, attempt, until, requests)
            return orders.epoch(trial, epoch, models.find(trial, epoch - 1), attempt, until, requests)

        group = Group(self, train_epoch, orders_of, f"epoch {epoch} of trial {trial}", meter, waits_s=waits_s)
        group.discard = lambda attempt: models.delete(orders.model(trial, epoch, attempt))
        return group


@dataclass
class Group:
    """One piece of work of a group of functions, with all its attempts. `start` starts each attempt."""

    workers: Workers
    function: Function
    orders: OrdersOf
    name: str
    meter: Meter
    discard: Callable[[int], None] = lambda attempt: None
    """Called for a failed attempt."""
    waits_s: float = 0.0
    """How long the first attempt may wait at a gate."""
    bill: Bill = field(default_factory=Bill)
    attempt: int = 0
    call: Call | None = None
    """The running attempt."""
    called_at: float = 0.0
    lasts_s: float = 0.0
    head_start_s: float = 0.0
    last_mistake: str = ""
    """What the job's own code raised in the previous attempt."""

    def __post_init__(self) -> None:
        self.began_at = time.time()

    @property
    def expected_s(self) -> float | None:
        """How long such a group takes; None before the first one."""
        return self.workers.durations.expected_s(self.function.__name__, self.workers.orders.allocation)

    @property
    def timeout_s(self) -> float:
        """After this time it counts as a straggler."""
        return self.workers.durations.timeout_s(self.function.__name__, self.workers.orders.allocation)

    def start(self, until: float, share: float) -> bool:
        """Call the functions; False if the budget does not cover that now. A refused call counts as an attempt.

        `until`: deadline of the functions, in Unix time. `share`: of the remaining budget, see `Meter.grant`.
        """
        timeout_s = self.timeout_s + (self.waits_s if self.attempt == 0 else 0.0)
        wanted_s = max(MIN_ATTEMPT_S, min(timeout_s, until - time.time()))
        least_s = min(wanted_s, self.expected_s or MIN_ATTEMPT_S)
        grant = self.meter.grant(self.name, wanted_s, least_s, share)
        if grant is None:
            return False
        try:
            self.workers.caller.deploy()
            self.called_at, self.lasts_s, self.head_start_s = time.time(), grant.seconds, 0.0
            orders = self.orders(self.attempt, min(until, self.called_at + grant.seconds), grant.requests)
            self.call = self.workers.caller.call(self.function, orders, grant.seconds)
        except CallRefused as error:
            self._count_failure(Outcome.LAUNCH_FAILED, str(error), "")
        return True

    def resume_on_meter(self, head_start_s: float = 0.0) -> bool:
        """Bill prewarmed functions to this launch's meter from now on; False if the budget does not cover that.

        `head_start_s`: the time that prewarming has saved.
        """
        grant = self.meter.grant(self.name, self.timeout_s, self.expected_s or MIN_ATTEMPT_S, 1.0)
        if grant is None:
            return False
        self.began_at = self.called_at = time.time()
        self.lasts_s, self.head_start_s = grant.seconds, head_start_s
        return True

    def poll(self) -> list[Report] | None:
        """The reports of all functions when all have succeeded, else None. Raises after the last failed attempt."""
        if self.call is None:
            return None
        answers, now = self.call.answers(), time.time()
        failed = [(rank, answer) for rank, answer in enumerate(answers) if answer is not None and _failed(answer)]
        reports = [answer.report for answer in answers if answer is not None and answer.report is not None]
        if failed:
            rank, answer = min(failed, key=lambda pair: _cause_first(pair[1]))
            outcome, why = _diagnosis(answer)
            mistake = why if (answer.report or {}).get("of_job") else ""
            repeated = bool(mistake) and mistake == self.last_mistake
            self.last_mistake = mistake
            final = repeated or bool((answer.report or {}).get("final"))
            self._attempt_failed(outcome, f"function {rank}: {why}", _log(answer), final)
        elif len(reports) == len(answers):
            if wrong := _disagreement(reports):
                self._attempt_failed(Outcome.FAILED, wrong, "")
                return None
            self.end()
            took_s, allocation = now - self.called_at + self.head_start_s, self.workers.orders.allocation
            self.workers.durations.record(self.function.__name__, allocation, took_s)
            return reports
        elif now - self.called_at > self.lasts_s:
            late = f"{len(answers) - len(reports)} of {len(answers)} functions had not ended"
            self._attempt_failed(Outcome.TIMED_OUT, f"{late} after {now - self.called_at:.0f} s", "")
        return None

    def end(self) -> None:
        """Close an attempt: end its functions, and bill them."""
        if self.call is not None:
            used = Bill()
            used.add(self.call, self.call.answers(), time.time())
            self.bill.join(used)
            self.workers.caller.end(self.call, used)
            self.call = None
        self.meter.settle(self.name, self.bill, time.time() - self.began_at)

    def _attempt_failed(self, outcome: Outcome, why: str, log: str, final: bool = False) -> None:
        self.end()
        self.discard(self.attempt)
        self._count_failure(outcome, why, log, final)

    def _count_failure(self, outcome: Outcome, why: str, log: str, final: bool = False) -> None:
        """Count a failed attempt."""
        self.attempt += 1
        if final or self.attempt >= MOST_ATTEMPTS:
            times = "" if self.attempt == 1 else f" {self.attempt} times"
            raise GroupFailed(outcome, f"{self.name} failed{times}; {why}", last_lines(log))


def _disagreement(reports: list[Report]) -> str:
    """An error if the functions ended with different models, else empty: all took the same steps."""
    models = {report.get("model") for report in reports}
    return "" if len(models) == 1 else f"{len(reports)} functions ended with {len(models)} different models"


def _failed(answer: Answer) -> bool:
    return answer.report is None or "error" in answer.report


def _cause_first(answer: Answer) -> int:
    """Sort key of failures, causes first: a function that died, one that raised, one that timed out waiting."""
    if answer.report is None:
        return 0
    return 2 if "exchange between" in answer.report["error"] else 1


def _log(answer: Answer) -> str:
    """The end of its output; empty if a storage failed, since then the job's code is not the cause."""
    if answer.report is None:
        return answer.log
    return str(answer.report["log"]) if answer.report["of_job"] or answer.report["final"] else ""


def _diagnosis(answer: Answer) -> tuple[Outcome, str]:
    """Why a function failed, in one line."""
    if answer.report is not None:
        memory = "MemoryError" in answer.report["error"]
        return (Outcome.OUT_OF_MEMORY if memory else Outcome.FAILED), answer.report["error"]
    if wrapped := _LITHOPS_ERROR.findall(answer.log):
        outcome = Outcome.OUT_OF_MEMORY if "memory" in wrapped[-1] else Outcome.FAILED
        return outcome, wrapped[-1][0].lower() + wrapped[-1][1:]
    diagnosis = diagnose(1, answer.log)
    return diagnosis.outcome, diagnosis.advice


def prewarm_after_s(durations: Durations, running: Allocation, then: Allocation) -> float:
    """x, counted from the call of the running epoch; infinite while the duration of such an epoch is unknown."""
    epoch_s = durations.expected_s("train_epoch", running)
    ready_s = durations.expected_s(READY, then) or durations.expected_s(READY, running)
    return math.inf if epoch_s is None or ready_s is None else max(0.0, epoch_s - ready_s)


@dataclass
class Prewarmed:
    """Functions that wait for an epoch of a trial. Closing `ending` ends them."""

    run: str
    trial: int
    epoch: int
    group: Group
    gate: str
    ending: ExitStack
    is_taken_over: bool = False
    """Whether a launch has taken them over."""
    paid: Bill = field(default_factory=Bill)
    """What was billed to the launch that called them."""

    def used(self) -> Bill:
        """What they have used so far, which is billed to the running launch."""
        self.paid = Bill()
        if self.group.call is not None:
            self.paid.add(self.group.call, self.group.call.answers(), time.time(), abandoned=False)
            self.group.workers.caller.journal.paid(self.paid)
        return self.paid

    def take_over(self, meter: Meter, model: str | None) -> bool:
        """Let them continue from this model, billed to another launch's meter; False if its budget is too small."""
        paid, self.group.meter = self.paid, meter
        self.group.bill = Bill(-paid.calls, -paid.function_s, deployed_gb_s=-paid.deployed_gb_s)
        workers = self.group.workers
        ready_s = workers.durations.expected_s(READY, workers.orders.allocation) or 0.0
        if model is None or self.group.call is None or not self.group.resume_on_meter(ready_s):
            return False
        bucket = workers.caller.bucket
        bucket.put_object(bucket.bucket, self.gate, f"{model}\n")
        self.is_taken_over = True
        return True

    def dismiss(self) -> None:
        """Close the gate. On a cloud, functions that wait there cannot be killed: they are told to end."""
        workers = self.group.workers
        if self.is_taken_over or workers.orders.throttled:
            workers.models.delete(self.gate)
        else:
            if self.group.call is not None:
                workers.caller.journal.ended(self.group.call.job, self.paid, time.time())
            workers.caller.bucket.put_object(workers.caller.bucket.bucket, self.gate, NOT_NEEDED)
