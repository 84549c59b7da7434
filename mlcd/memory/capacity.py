"""Observed capacity of clouds: every launch in the ledger shows whether machines were available, when and where.

It also shows how long they took to start, how long they ran, and whether they were preempted. Nothing else is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import fmean, quantiles

from mlcd.core.errors import LedgerCorrupt
from mlcd.core.history import Rental
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Line, Settled, Started
from mlcd.core.market import Market
from mlcd.core.measurement import Outcome
from mlcd.memory.earlier_runs import MOST_RUNS

REMEMBERED = timedelta(days=7)
"""Older observations of a zone say little about today."""
ENOUGH_TRIES = 24
"""Launch attempts needed before they are split by hour of the day."""
HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class CapacityObservation:
    """One launch of a run. `at`: when its machines were requested."""

    at: datetime
    on: str
    cloud: str
    rental: Rental

    @property
    def where(self) -> str:
        """The zone, or the region if any of its zones was accepted."""
        return self.rental.market.zone or self.rental.market.region


@dataclass(frozen=True, slots=True)
class Capacity:
    """Observed availability of one number of nodes of one type on one market of a place.

    `tries`: launch attempts; `got`: how many got machines. `got_by_hour`: tries and successes by hour of the day, UTC;
    empty while there are few.
    """

    on: str
    cloud: str
    zone: str
    instance_type: str
    nodes: int
    market: str
    tries: int
    got: int
    taken_back: int
    mean_life_h: float | None
    startup_median_s: float | None
    startup_p99_s: float | None
    last_got: datetime | None
    last_seen: datetime
    got_by_hour: dict[int, tuple[int, int]]

    @property
    def share(self) -> float:
        """The share of attempts that got machines."""
        return self.got / self.tries


def observations_of(lines: Sequence[Line]) -> Iterator[CapacityObservation]:
    """The observations of a run's launches. Launches outside clouds, which have no region, are left out."""
    started = lines[0].entry
    assert isinstance(started, Started)
    for line in lines:
        if not isinstance(line.entry, Settled):
            continue
        order, m = line.entry.launch, line.entry.measurement
        offer = order.rented.offer
        unknown = m.outcome is Outcome.INTERRUPTED and not m.startup_s
        if not offer.region or unknown:
            continue
        market = order.market or Market(offer.zone, offer.spot, offer.usd_per_hour, offer.region)
        rental = Rental.of(market, m, line.elapsed_s)
        yield CapacityObservation(
            lines[0].written_at + timedelta(seconds=rental.began_s), started.job.on, offer.cloud, rental
        )


def all_observations(ledger: Ledger) -> list[CapacityObservation]:
    """The observations of all runs, the oldest first, without damaged runs."""
    observations: list[CapacityObservation] = []
    for run in ledger.runs():
        with suppress(LedgerCorrupt):
            observations += observations_of(ledger.lines(run))
    return sorted(observations, key=lambda each: each.at)


def rentals_before(
    ledger: Ledger, job: Job, instance_types: Collection[str], now: datetime, owner: str | None = None
) -> tuple[Rental, ...]:
    """Recent rentals of these types by runs at the same place, the oldest first, on the clock of a run that begins now.

    `owner`: only runs of this member, if members share a ledger.
    """
    rentals: list[Rental] = []
    for run in ledger.runs_at(job.on, MOST_RUNS, owner):
        with suppress(LedgerCorrupt):
            for seen in observations_of(ledger.lines(run)):
                rental = seen.rental
                if seen.on == job.on and rental.instance_type in instance_types and now - seen.at < REMEMBERED:
                    began_s = (seen.at - now).total_seconds()
                    ended_s = began_s + rental.ended_s - rental.began_s
                    rentals.append(replace(rental, began_s=began_s, ended_s=min(0.0, ended_s)))
    return tuple(sorted(rentals, key=lambda rental: rental.ended_s))


def capacity(observations: Iterable[CapacityObservation]) -> list[Capacity]:
    """Observed capacity by place, type, zone, number of nodes and market."""
    groups: dict[tuple[str, str, str, str, int, bool], list[CapacityObservation]] = {}
    for each in observations:
        rental = each.rental
        key = (each.on, each.cloud, rental.instance_type, each.where, rental.nodes, not rental.market.spot)
        groups.setdefault(key, []).append(each)
    return [_capacity(groups[key]) for key in sorted(groups)]


def _capacity(observations: Sequence[CapacityObservation]) -> Capacity:
    first, came = observations[0], [each for each in observations if each.rental.came]
    lives = [(each.rental.ended_s - each.rental.began_s) / HOUR_S for each in came]
    starts = sorted(each.rental.startup_s for each in came if each.rental.startup_s)
    return Capacity(
        on=first.on,
        cloud=first.cloud,
        zone=first.where,
        instance_type=first.rental.instance_type,
        nodes=first.rental.nodes,
        market="spot" if first.rental.market.spot else "on demand",
        tries=len(observations),
        got=len(came),
        taken_back=sum(each.rental.taken_back for each in came),
        mean_life_h=fmean(lives) if lives else None,
        startup_median_s=_quantile(starts, 50),
        startup_p99_s=_quantile(starts, 99),
        last_got=max((each.at for each in came), default=None),
        last_seen=max(each.at for each in observations),
        got_by_hour=_by_hour(observations) if len(observations) >= ENOUGH_TRIES else {},
    )


def _quantile(values: Sequence[float], percent: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _by_hour(observations: Iterable[CapacityObservation]) -> dict[int, tuple[int, int]]:
    counts: dict[int, tuple[int, int]] = {}
    for each in observations:
        tries, got = counts.get(each.at.hour, (0, 0))
        counts[each.at.hour] = tries + 1, got + each.rental.came
    return dict(sorted(counts.items()))
