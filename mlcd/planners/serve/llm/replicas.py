"""How many replicas of which deployment the expected traffic needs, and what they cost in a month.

Each hour has enough replicas for its rate, and spare ones in case one fails; an added replica is started before the
hour begins, and its start is paid for. Of all deployments that were tried, at any admission limit that meets the caps,
the one with the cheapest month is chosen. The rate that one replica can take is computed in `capacity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from mlcd.core.configuration import Configuration
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.planners.serve import service_level
from mlcd.planners.serve.llm.capacity import Replica, replica
from mlcd.planners.serve.llm.traffic import Traffic
from mlcd.planners.serve.nouns import Knobs, Level, knobs_of, served_by, service_of

MONTH_H = 730.0
LOAD_KNOBS = ("concurrency", "users")
"""Knobs of the load, not of the deployment."""
STEP, MOST_STEPS = 1.02, 2_000
"""The search for break-even traffic: factor of each step, and most steps."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Average tokens of a request and of its answer."""

    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class ApiPrice:
    """An API's price for a million input tokens, and for a million output tokens."""

    input_usd: float
    output_usd: float

    def usd_per_request(self, lengths: Lengths) -> float:
        """The price of a request of these lengths."""
        return (lengths.input_tokens * self.input_usd + lengths.output_tokens * self.output_usd) / 1e6


@dataclass(frozen=True)
class Option:
    """A deployment that was tried, and the load that one replica of it can take. `trial`: number of its first trial."""

    trial: int
    configuration: Configuration
    knobs: Knobs
    startup_s: float
    replica: Replica


@dataclass(frozen=True)
class Fleet:
    """The number of replicas of one deployment in each hour of the traffic. `needed`: without spare ones."""

    option: Option
    traffic: Traffic
    lengths: Lengths
    counts: tuple[int, ...]
    needed: tuple[int, ...]

    @property
    def usd_per_month(self) -> float:
        """The monthly cost if replicas are scaled hour by hour, including their starts."""
        added = sum(max(0, now - before) for before, now in pairwise((self.counts[-1], *self.counts)))
        hours = sum(self.counts) + added * self.option.startup_s / 3_600
        return MONTH_H / len(self.counts) * hours * self.option.configuration.usd_per_hour

    @property
    def usd_per_month_fixed(self) -> float:
        """The monthly cost if as many replicas as the busiest hour needs run all the time."""
        return MONTH_H * max(self.counts) * self.option.configuration.usd_per_hour

    @property
    def requests_per_month(self) -> float:
        """Requests in a month."""
        return 3_600 * MONTH_H * self.traffic.average

    @property
    def usd_per_million_output(self) -> float:
        """Dollars for a million output tokens at this traffic."""
        return self.usd_per_month / (self.requests_per_month * self.lengths.output_tokens) * 1e6

    @property
    def usd_per_million_total(self) -> float:
        """Dollars for a million tokens, input and output together."""
        tokens = self.lengths.input_tokens + self.lengths.output_tokens
        return self.usd_per_month / (self.requests_per_month * tokens) * 1e6

    def api_usd_per_month(self, price: ApiPrice) -> float:
        """What an API would charge for the same requests."""
        return self.requests_per_month * price.usd_per_request(self.lengths)


def options(job: Job, measurements: Sequence[Measurement], lengths: Lengths) -> list[Option]:
    """Every tried deployment that meets the caps at some level. Trials that differ only in the load are combined."""
    caps, grouped = service_of(job).caps, dict[tuple[str, float, Knobs], list[tuple[int, Measurement]]]()
    for number, m in enumerate(measurements, start=1):
        if m.ok:
            knobs = tuple((name, value) for name, value in knobs_of(m.configuration) if name not in LOAD_KNOBS)
            grouped.setdefault((m.configuration.offer.name, m.configuration.usd_per_hour, knobs), []).append(
                (number, m)
            )
    found = []
    for (_, _, knobs), trials in grouped.items():
        levels = _pooled(level for _, m in trials for level in levels_of(m))
        if (takes := replica(levels, caps, lengths.output_tokens)) is not None:
            startup_s = max(m.startup_s for _, m in trials)
            found.append(Option(trials[0][0], trials[0][1].configuration, knobs, startup_s, takes))
    return found


def levels_of(m: Measurement) -> tuple[Level, ...]:
    """The levels of a trial; if concurrency is a knob, the single level of that concurrency."""
    served = served_by(m)
    stated = next((value for name, value in knobs_of(m.configuration) if name in LOAD_KNOBS), None)
    if served.levels or stated is None:
        return served.levels
    return (Level(int(stated), m.rate, m.rel_error, served.figures, served.high),)


def admitted(job: Job, m: Measurement) -> int | None:
    """The concurrency of the job's best level, to which admission is limited; None if unknown."""
    stated = next((int(value) for name, value in knobs_of(m.configuration) if name in LOAD_KNOBS), None)
    return service_level.best_level(job, m).concurrency or stated


def chosen_trial(run: str, account: Account) -> Measurement:
    """The newest trial of the decided configuration; WrongState if nothing was decided."""
    decision = account.decision
    if decision is None or decision.configuration is None:
        raise WrongState(f"run '{run}' has chosen no configuration; there is nothing to deploy")
    trials = [m for m in account.searched.measurements if m.ok and m.configuration == decision.configuration]
    if not trials:
        raise WrongState(f"run '{run}' has never tried what it chose; there is nothing to deploy")
    return trials[-1]


def _pooled(levels: Iterable[Level]) -> list[Level]:
    found = dict[int, Level]()
    for level in levels:
        before = found.get(level.concurrency)
        found[level.concurrency] = level if before is None else before.pooled(level)
    return list(found.values())


def fleet(option: Option, traffic: Traffic, lengths: Lengths, spare: int = 1) -> Fleet:
    """Enough replicas in each hour (at least one, even without requests), and `spare` more."""
    needed = tuple(max(1, ceil(rate / option.replica.rate - 1e-9)) for rate in traffic.rates)
    return Fleet(option, traffic, lengths, tuple(count + spare for count in needed), needed)


def cheapest(found: Sequence[Option], traffic: Traffic, lengths: Lengths, spare: int = 1) -> Fleet | None:
    """The fleet with the lowest monthly cost."""
    fleets = [fleet(option, traffic, lengths, spare) for option in found]
    return min(fleets, key=lambda each: each.usd_per_month, default=None)


def break_even(
    found: Sequence[Option], traffic: Traffic, lengths: Lengths, price: ApiPrice, spare: int = 1
) -> float | None:
    """The lowest average rate of this traffic shape at which a fleet costs no more than the API; None if none."""
    scale = 0.001 / traffic.average
    for _ in range(MOST_STEPS):
        best = cheapest(found, traffic.times(scale), lengths, spare)
        if best is None or min(best.needed) > 1_000:
            return None
        if best.usd_per_month <= best.api_usd_per_month(price):
            return best.traffic.average
        scale *= STEP
    return None
