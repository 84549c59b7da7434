"""How many replicas of which deployment carry the traffic that is expected, and what a month of that costs.

In each hour there are enough replicas for its rate, and one more where one may be lost; a replica that is added has
been started before the hour begins, and is paid for from then on. Of all deployments that were tried, at any number of
places that keeps the caps, the one is chosen whose month is cheapest. Rates are those of `capacity`.
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
"""Break-even traffic is looked for in such steps, so many times."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of a request, on average."""

    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class ApiPrice:
    """Dollars that an API takes for a million tokens of a prompt, and of an answer."""

    input_usd: float
    output_usd: float

    def usd_per_request(self, lengths: Lengths) -> float:
        """Of a request of these lengths."""
        return (lengths.input_tokens * self.input_usd + lengths.output_tokens * self.output_usd) / 1e6


@dataclass(frozen=True)
class Option:
    """A deployment that was tried, in the `trial`-th trial of its run (the first of several), and what it takes."""

    trial: int
    configuration: Configuration
    knobs: Knobs
    startup_s: float
    replica: Replica


@dataclass(frozen=True)
class Fleet:
    """Replicas of one deployment through the hours of the traffic. `needed`: without the spare one."""

    option: Option
    traffic: Traffic
    lengths: Lengths
    counts: tuple[int, ...]
    needed: tuple[int, ...]

    @property
    def usd_per_month(self) -> float:
        """Of the replicas by the hour, starting them included."""
        added = sum(max(0, now - before) for before, now in pairwise((self.counts[-1], *self.counts)))
        hours = sum(self.counts) + added * self.option.startup_s / 3_600
        return MONTH_H / len(self.counts) * hours * self.option.configuration.usd_per_hour

    @property
    def usd_per_month_fixed(self) -> float:
        """Of as many as the busiest hour needs, all the time."""
        return MONTH_H * max(self.counts) * self.option.configuration.usd_per_hour

    @property
    def requests_per_month(self) -> float:
        """All of them."""
        return 3_600 * MONTH_H * self.traffic.average

    @property
    def usd_per_million_output(self) -> float:
        """Dollars for a million tokens of answers, at this traffic."""
        return self.usd_per_month / (self.requests_per_month * self.lengths.output_tokens) * 1e6

    @property
    def usd_per_million_total(self) -> float:
        """The same of all tokens, those of the prompts included."""
        tokens = self.lengths.input_tokens + self.lengths.output_tokens
        return self.usd_per_month / (self.requests_per_month * tokens) * 1e6

    def api_usd_per_month(self, price: ApiPrice) -> float:
        """What an API would take for the same requests."""
        return self.requests_per_month * price.usd_per_request(self.lengths)


def options(job: Job, measurements: Sequence[Measurement], lengths: Lengths) -> list[Option]:
    """Every deployment that was tried and keeps the caps at some level. Trials that differ in load alone are one."""
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
    """The levels of a trial; of one whose concurrency is a knob, that one alone."""
    served = served_by(m)
    stated = next((value for name, value in knobs_of(m.configuration) if name in LOAD_KNOBS), None)
    if served.levels or stated is None:
        return served.levels
    return (Level(int(stated), m.rate, m.rel_error, served.figures, served.high),)


def admitted(job: Job, m: Measurement) -> int | None:
    """Requests at once of the level that is worth most to the job; None if nobody counted them."""
    stated = next((int(value) for name, value in knobs_of(m.configuration) if name in LOAD_KNOBS), None)
    return service_level.best_level(job, m).concurrency or stated


def chosen_trial(run: str, account: Account) -> Measurement:
    """The newest trial of what a run has chosen; WrongState if it has chosen nothing."""
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
    """Enough replicas in each hour, and `spare` more. In an hour without requests one is kept, too."""
    needed = tuple(max(1, ceil(rate / option.replica.rate - 1e-9)) for rate in traffic.rates)
    return Fleet(option, traffic, lengths, tuple(count + spare for count in needed), needed)


def cheapest(found: Sequence[Option], traffic: Traffic, lengths: Lengths, spare: int = 1) -> Fleet | None:
    """The fleet whose month costs least."""
    fleets = [fleet(option, traffic, lengths, spare) for option in found]
    return min(fleets, key=lambda each: each.usd_per_month, default=None)


def break_even(
    found: Sequence[Option], traffic: Traffic, lengths: Lengths, price: ApiPrice, spare: int = 1
) -> float | None:
    """The fewest requests a second, on average in this shape, at which a fleet costs no more than the API; or None."""
    scale = 0.001 / traffic.average
    for _ in range(MOST_STEPS):
        best = cheapest(found, traffic.times(scale), lengths, spare)
        if best is None or min(best.needed) > 1_000:
            return None
        if best.usd_per_month <= best.api_usd_per_month(price):
            return best.traffic.average
        scale *= STEP
    return None
