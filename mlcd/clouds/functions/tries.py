"""Functions that work as one group: called together, watched, and called again where one of them fails.

One function that dies, raises, or does not come back in time, or a storage that is gone, breaks the whole attempt: the
others are ended, and all are called again as a new group, which shares nothing with the old one. Every attempt is
billed. The same error of the job's own code twice is not tried a third time. A straggler is a group that takes
`STRAGGLER` times the median of those before it on the same allocation.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from mlcd.clouds.functions.calls import Answer, Call, Caller, CallRefused
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.platforms import diagnose
from mlcd.clouds.platforms.failures import last_lines
from mlcd.core.measurement import Outcome
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation

Report = dict[str, Any]
Function = Callable[..., Report]
OrdersOf = Callable[[int, float, int | None], list[dict[str, Any]]]
"""For an attempt, until when it may last, and how many requests it may make."""

STRAGGLER = 4.0
SOONEST_S, LATEST_S = 10.0, 900.0
"""An attempt is given so long, however quick the others were; and no longer than Lambda gives a function."""
SHORTEST_S = 1.0
"""There is no use in calling functions for less."""
_OF_LITHOPS = re.compile(r"\('HANDLER', ['\"](.*)['\"]\)")
"""How Lithops wraps what it has to say about a function's process."""


class Lost(Exception):
    """All attempts have failed: how, in a line, and the end of the output."""

    def __init__(self, outcome: Outcome, why: str, log: str) -> None:
        super().__init__(why)
        self.outcome, self.log = outcome, log


@dataclass
class Pace:
    """How long groups took so far, by allocation, and how long the next may take: `soonest_s` at the least."""

    soonest_s: float = SOONEST_S
    seen: dict[tuple[str, Allocation], list[float]] = field(default_factory=dict)

    def note(self, what: str, allocation: Allocation, seconds: float) -> None:
        """One has ended well."""
        self.seen.setdefault((what, allocation), []).append(seconds)

    def expected_s(self, what: str, allocation: Allocation) -> float | None:
        """The median, once there is one."""
        before = self.seen.get((what, allocation))
        return median(before) if before else None

    def patience_s(self, what: str, allocation: Allocation) -> float:
        """Until when one that has not ended counts as a straggler."""
        expected_s = self.expected_s(what, allocation)
        return LATEST_S if expected_s is None else min(LATEST_S, max(self.soonest_s, STRAGGLER * expected_s))


@dataclass
class Group:
    """One piece of work of a group of functions, from its first attempt to its end. `start` begins each attempt."""

    caller: Caller
    function: Function
    orders: OrdersOf
    name: str
    allocation: Allocation
    pace: Pace
    meter: Meter
    check: Callable[[list[Report]], str] = lambda reports: ""
    """What is wrong with reports that came; nothing, if nothing is."""
    give_up: Callable[[int], None] = lambda attempt: None
    """Called for an attempt that came to nothing."""
    waits_s: float = 0.0
    """The first attempt may wait so long before it begins."""
    bill: Bill = field(default_factory=Bill)
    attempt: int = 0
    call: Call | None = None
    """Of the attempt that is under way."""
    called_at: float = 0.0
    lasts_s: float = 0.0
    head_start_s: float = 0.0
    last_mistake: str = ""
    """What the job's own code raised in the attempt before."""

    def __post_init__(self) -> None:
        self.began_at = time.time()

    @property
    def what(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def start(self, until: float, share: float) -> bool:
        """Call the functions; False if that cannot be paid for now. A platform that refuses is an attempt, too.

        `until`: the time of day after which none of them works on. `share`: of the money left, as `Meter.grant` has it.
        """
        patience_s = self.pace.patience_s(self.what, self.allocation)
        patience_s += self.waits_s if self.attempt == 0 else 0.0
        wanted_s = max(SHORTEST_S, min(patience_s, until - time.time()))
        least_s = min(wanted_s, self.pace.expected_s(self.what, self.allocation) or SHORTEST_S)
        grant = self.meter.grant(self.name, wanted_s, least_s, share)
        if grant is None:
            return False
        self.called_at, self.lasts_s, self.head_start_s = time.time(), grant.seconds, 0.0
        orders = self.orders(self.attempt, min(until, self.called_at + grant.seconds), grant.requests)
        try:
            self.call = self.caller.call(self.function, orders, grant.seconds)
        except CallRefused as error:
            self._count(Outcome.LAUNCH_FAILED, str(error), "")
        return True

    def go_on(self, head_start_s: float = 0.0) -> bool:
        """Count from now, on another meter, for functions that were called before; False if that cannot be paid for.

        `head_start_s`: what it would have taken until they were ready.
        """
        wanted_s = self.pace.patience_s(self.what, self.allocation)
        least_s = self.pace.expected_s(self.what, self.allocation) or SHORTEST_S
        grant = self.meter.grant(self.name, wanted_s, least_s, 1.0)
        if grant is None:
            return False
        self.began_at = self.called_at = time.time()
        self.lasts_s, self.head_start_s = grant.seconds, head_start_s
        return True

    def look(self) -> list[Report] | None:
        """The reports of all functions once they have ended well. What broke may be started again; at last, Lost."""
        if self.call is None:
            return None
        answers, now = self.call.answers(), time.time()
        failed = [(rank, answer) for rank, answer in enumerate(answers) if answer is not None and _failed(answer)]
        reports = [answer.report for answer in answers if answer is not None and answer.report is not None]
        if failed:
            rank, answer = min(failed, key=lambda pair: _blame(pair[1]))
            outcome, why = _diagnosis(answer)
            mistake = why if (answer.report or {}).get("of_job") else ""
            repeated = bool(mistake) and mistake == self.last_mistake
            self.last_mistake = mistake
            final = repeated or bool((answer.report or {}).get("final"))
            self._broken(outcome, f"function {rank}: {why}", _log(answer), final)
        elif len(reports) == len(answers):
            if wrong := self.check(reports):
                self._broken(Outcome.FAILED, wrong, "")
                return None
            self.end()
            self.pace.note(self.what, self.allocation, now - self.called_at + self.head_start_s)
            return reports
        elif now - self.called_at > self.lasts_s:
            late = f"{len(answers) - len(reports)} of {len(answers)} functions had not ended"
            self._broken(Outcome.TIMED_OUT, f"{late} after {now - self.called_at:.0f} s", "")
        return None

    def end(self) -> None:
        """Have done with an attempt; what still runs is ended, and all of it billed."""
        if self.call is not None:
            self.bill.add(self.call, self.call.answers(), time.time())
            self.caller.end(self.call)
            self.call = None
        self.meter.settle(self.name, self.bill, time.time() - self.began_at)

    def _broken(self, outcome: Outcome, why: str, log: str, final: bool = False) -> None:
        self.end()
        self.give_up(self.attempt)
        self._count(outcome, why, log, final)

    def _count(self, outcome: Outcome, why: str, log: str, final: bool = False) -> None:
        """One attempt more has come to nothing."""
        self.attempt += 1
        if final or self.attempt >= MOST_ATTEMPTS:
            times = "" if self.attempt == 1 else f" {self.attempt} times"
            raise Lost(outcome, f"{self.name} failed{times}; {why}", last_lines(log))


def _failed(answer: Answer) -> bool:
    return answer.report is None or "error" in answer.report


def _blame(answer: Answer) -> int:
    """Of several that failed, the reason for the others first: one that died, one that erred, one that waited."""
    if answer.report is None:
        return 0
    return 2 if "meeting of" in answer.report["error"] else 1


def _log(answer: Answer) -> str:
    """The end of its output, which blames the job; none where a storage has failed."""
    if answer.report is None:
        return answer.log
    return str(answer.report["log"]) if answer.report["of_job"] or answer.report["final"] else ""


def _diagnosis(answer: Answer) -> tuple[Outcome, str]:
    """Why a function failed, in a line."""
    if answer.report is not None:
        memory = "MemoryError" in answer.report["error"]
        return (Outcome.OUT_OF_MEMORY if memory else Outcome.FAILED), answer.report["error"]
    if wrapped := _OF_LITHOPS.findall(answer.log):
        outcome = Outcome.OUT_OF_MEMORY if "memory" in wrapped[-1] else Outcome.FAILED
        return outcome, wrapped[-1][0].lower() + wrapped[-1][1:]
    told = diagnose(1, answer.log)
    return told.outcome, told.advice
