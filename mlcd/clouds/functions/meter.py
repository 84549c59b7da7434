"""Meters the costs of functions, so that a launch never costs more than its limit.

Equation (4) of CE-scaling, with measured instead of expected quantities:

    usd = calls p_invk + function seconds p_f(m) + requests p_s            or, for a storage that is billed by time,
                                                 + (seconds / 60 + 1) p_s

p_s is a mean price per request. S3 is billed by the real numbers of puts and gets.

On a cloud, the calls by which Lithops creates functions are billed, too, and the requests to the bucket with the data,
the models and Lithops' own messages.

An attempt starts only if its worst case, together with those of the running attempts, fits the remaining budget: its
timeout is shortened to fit, and where requests are billed, each function gets a quota.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlcd.clouds.functions.call import Call, Requests
from mlcd.clouds.functions.lithops_internals import Answer
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.functions.workload import StorageKind, StorageRate, Tariff

POLLS = 3
"""Allowed requests over those of the equations: functions that wait for each other poll."""
SLACK_S = 1.0
"""How long a function may be billed after it was told to end."""


@dataclass
class Bill:
    """The usage of one piece of work, failed attempts included."""

    calls: int = 0
    function_s: float = 0.0
    requests: int = 0
    deployed_gb_s: float = 0.0
    """GB-seconds of calls that created the functions."""
    puts: int = 0
    """How many of the requests were puts."""
    bucket: Requests = field(default_factory=Requests)

    def add(self, call: Call, answers: Sequence[Answer | None], now: float, *, abandoned: bool = True) -> None:
        """Add a finished attempt, or with `abandoned=False` the usage of a running one so far.

        The requests of a function that died are unknown, and not counted.
        """
        self.calls += len(answers) + len(call.deployed)
        self.deployed_gb_s += sum(each.gb_s for each in call.deployed)
        self.bucket = self.bucket.plus(call.bucket_requests())
        for number, answer in enumerate(answers):
            self.function_s += call.billed_s(number, answer, now, abandoned=abandoned)
            if answer is not None and answer.report is not None:
                self.requests += answer.report.get("requests", 0)
                self.puts += answer.report.get("puts", 0)

    def join(self, other: Bill) -> None:
        """Add another bill."""
        self.calls += other.calls
        self.function_s += other.function_s
        self.requests += other.requests
        self.deployed_gb_s += other.deployed_gb_s
        self.puts += other.puts
        self.bucket = self.bucket.plus(other.bucket)


@dataclass(frozen=True)
class Grant:
    """The limits of an attempt: its time, and the requests of all its functions together (None: unlimited)."""

    seconds: float
    requests: int | None


@dataclass
class Meter:
    """The meter of one launch. `most_usd`: its cost limit, None for none. Each piece of work has a key.

    `steps`: how often the functions exchange gradients in an attempt.
    """

    tariff: Tariff
    allocation: Allocation
    steps: int
    most_usd: float | None = None
    _spent: dict[object, float] = field(default_factory=dict)
    _reserved: dict[object, float] = field(default_factory=dict)

    def usd(self, bill: Bill, seconds: float) -> float:
        """The cost of this bill over this time."""
        minutes_usd = (seconds / 60 + 1) * self._rate.usd_per_minute
        requests_usd = bill.requests * self._rate.usd_per_request
        if self.tariff.usd_per_put and self._rate.name == StorageKind.S3:
            requests_usd = self._requests_usd(Requests(bill.puts, bill.requests - bill.puts))
        return self.functions_usd(bill) + requests_usd + minutes_usd

    def functions_usd(self, bill: Bill) -> float:
        """The part of the cost that is for functions."""
        deployed_usd = bill.deployed_gb_s * self.tariff.usd_per_gb_s + self._requests_usd(bill.bucket)
        return bill.calls * self.tariff.usd_per_call + bill.function_s * self._usd_per_function_s + deployed_usd

    def _requests_usd(self, requests: Requests) -> float:
        """The cost of requests to S3."""
        return requests.puts * self.tariff.usd_per_put + requests.gets * self.tariff.usd_per_get

    def grant(self, key: object, wanted_s: float, least_s: float, share: float) -> Grant | None:
        """Reserve the worst case of an attempt; None if the budget does not cover even `least_s`.

        `share`: the part of the remaining budget to use first, since others may want to start, too.
        """
        n = self.allocation.functions
        requests = POLLS * self.steps * (10 * n + 2) if self._rate.usd_per_request else None
        if self.most_usd is None:
            return Grant(wanted_s, requests)
        left_usd = self._left_usd()
        once_usd = n * self.tariff.usd_per_call + (requests or 0) * self._rate.usd_per_request
        once_usd += self._rate.usd_per_minute
        usd_per_s = n * self._usd_per_function_s + self._rate.usd_per_minute / 60
        for part_usd in (share * left_usd, left_usd):
            lasts_s = (part_usd - once_usd) / usd_per_s - SLACK_S if usd_per_s else math.inf
            if part_usd >= once_usd and lasts_s >= least_s:
                lasts_s = min(lasts_s, wanted_s)
                self._reserved[key] = once_usd + usd_per_s * (lasts_s + SLACK_S)
                return Grant(lasts_s, requests)
        return None

    def reserve_for(self, key: object, other: Meter, wanted_s: float, least_s: float) -> float | None:
        """Reserve what prewarmed functions of another meter may use until a launch takes them over.

        Returns the seconds that the budget covers, at most `wanted_s`; None if these are fewer than `least_s`.
        """
        n, left_usd = other.allocation.functions, self._left_usd()
        calls_usd, usd_per_s = other.functions_usd(Bill(n)), other.functions_usd(Bill(0, float(n)))
        lasts_s = wanted_s if left_usd == math.inf or not usd_per_s else (left_usd - calls_usd) / usd_per_s - SLACK_S
        lasts_s = min(lasts_s, wanted_s)
        if lasts_s < least_s or calls_usd > left_usd:
            return None
        self._reserved[key] = calls_usd + usd_per_s * (lasts_s + SLACK_S)
        return lasts_s

    def _left_usd(self) -> float:
        if self.most_usd is None:
            return math.inf
        return self.most_usd - math.fsum(self._spent.values()) - math.fsum(self._reserved.values())

    def add_cost(self, key: object, usd: float) -> None:
        """Add another cost of the launch."""
        self._spent[key] = usd

    def settle(self, key: object, bill: Bill, seconds: float) -> None:
        """An attempt is over: release its reserve, and add its actual cost."""
        self._reserved.pop(key, None)
        self._spent[key] = self.usd(bill, seconds)

    @property
    def _usd_per_function_s(self) -> float:
        return self.tariff.usd_per_function_s(self.allocation.memory_mb)

    @property
    def _rate(self) -> StorageRate:
        return self.tariff.storage(self.allocation.storage)
