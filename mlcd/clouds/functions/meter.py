"""What functions are billed for, counted as they use it, so that a launch never costs more than it may.

Equation (4) of CE-scaling, with what was counted in the place of what is expected:

    usd = calls p_invk + function seconds p_f(m) + requests p_s            or, for a storage that is paid by time,
                                                 + (seconds / 60 + 1) p_s

An attempt is begun only if its most fits into what is left beside the most of those that run: its own time limit is cut
to that, and where requests are paid for, each function is told how many it may make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlcd.clouds.functions.calls import Answer, Call
from mlcd.planners.functions.nouns import Allocation, StorageRate, Tariff

POLLS = 3
"""Requests for each one that the equations count: functions that wait for each other ask more than once."""
SLACK_S = 1.0
"""A function that is to end may still be billed for so long."""


@dataclass
class Bill:
    """What one piece of work has used, attempts that came to nothing included."""

    calls: int = 0
    function_s: float = 0.0
    requests: int = 0

    def add(self, call: Call, answers: Sequence[Answer | None], now: float) -> None:
        """An attempt that is over. A function is billed from when it was up; one that cannot say, as Lithops saw it.

        What a function has asked of its storage is not known where it died.
        """
        self.calls += len(answers)
        for number, answer in enumerate(answers):
            report = (answer.report if answer is not None else None) or {}
            began_at = report.get("up_at") or (answer.began_at if answer is not None else call.began_at(number))
            ended_at = report.get("ended_at") or (answer.ended_at if answer is not None else None) or now
            self.function_s += max(0.0, ended_at - began_at) if began_at is not None else 0.0
            self.requests += report.get("requests", 0)


@dataclass(frozen=True)
class Grant:
    """An attempt may last so long, and its functions may make so many requests together; None where they are free."""

    seconds: float
    requests: int | None


@dataclass
class Meter:
    """Of one launch. `most_usd`: what it may cost, None where nobody minds. Work is known by a key of any kind.

    `steps`: how often the functions meet in an attempt.
    """

    tariff: Tariff | None
    allocation: Allocation
    steps: int
    most_usd: float | None = None
    _used: dict[object, float] = field(default_factory=dict)
    _kept: dict[object, float] = field(default_factory=dict)

    def usd(self, bill: Bill, seconds: float) -> float:
        """What that comes to, if it took so long in all."""
        minutes_usd = (seconds / 60 + 1) * self._rate.usd_per_minute
        return self.functions_usd(bill) + bill.requests * self._rate.usd_per_request + minutes_usd

    def functions_usd(self, bill: Bill) -> float:
        """The part of it that is for functions."""
        if self.tariff is None:
            return 0.0
        return bill.calls * self.tariff.usd_per_call + bill.function_s * self._usd_per_function_s

    def grant(self, key: object, wanted_s: float, least_s: float, share: float) -> Grant | None:
        """Leave to begin an attempt, and keep its most; None if not even `least_s` can be paid for.

        `share`: of what is left, since others may want to begin, too.
        """
        requests = self._most_requests()
        if self.tariff is None or self.most_usd is None:
            return Grant(wanted_s, requests)
        left_usd = self._left_usd()
        n = self.allocation.functions
        once_usd = n * self.tariff.usd_per_call + (requests or 0) * self._rate.usd_per_request
        once_usd += self._rate.usd_per_minute
        usd_per_s = n * self._usd_per_function_s + self._rate.usd_per_minute / 60
        for part_usd in (share * left_usd, left_usd):
            lasts_s = (part_usd - once_usd) / usd_per_s - SLACK_S if usd_per_s else math.inf
            if part_usd >= once_usd and lasts_s >= least_s:
                lasts_s = min(lasts_s, wanted_s)
                self._kept[key] = once_usd + usd_per_s * (lasts_s + SLACK_S)
                return Grant(lasts_s, requests)
        return None

    def keep_for(self, key: object, other: Meter, wanted_s: float, least_s: float) -> float | None:
        """Keep what the functions of another meter may use until a launch of theirs takes them over.

        For so many seconds, or as many as are left for; None if these are fewer than the least.
        """
        n, left_usd = other.allocation.functions, self._left_usd()
        calls_usd, usd_per_s = other.functions_usd(Bill(n)), other.functions_usd(Bill(0, float(n)))
        lasts_s = wanted_s if left_usd == math.inf or not usd_per_s else (left_usd - calls_usd) / usd_per_s - SLACK_S
        lasts_s = min(lasts_s, wanted_s)
        if lasts_s < least_s or calls_usd > left_usd:
            return None
        self._kept[key] = calls_usd + usd_per_s * (lasts_s + SLACK_S)
        return lasts_s

    def _left_usd(self) -> float:
        if self.most_usd is None:
            return math.inf
        return self.most_usd - math.fsum(self._used.values()) - math.fsum(self._kept.values())

    def settle(self, key: object, bill: Bill, seconds: float) -> None:
        """An attempt is over: what is kept for it is free again, and what it used is spent."""
        self._kept.pop(key, None)
        self._used[key] = self.usd(bill, seconds)

    def _most_requests(self) -> int | None:
        if not self._rate.usd_per_request:
            return None
        n = self.allocation.functions
        return POLLS * self.steps * (10 * n + 2)

    @property
    def _usd_per_function_s(self) -> float:
        return self.tariff.usd_per_function_s(self.allocation.memory_mb) if self.tariff is not None else 0.0

    @property
    def _rate(self) -> StorageRate:
        name = self.allocation.storage
        return self.tariff.storage(name) if self.tariff is not None else StorageRate(name)
