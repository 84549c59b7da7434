"""What runs have seen of the clouds' capacity: every launch tells whether machines could be had, when and where.

It also tells how long they took to come, how long they lived, and whether they were taken back. All of it is in the
ledger; nothing is stored besides.
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
"""What a zone had before says little of today."""
ENOUGH_TRIES = 24
"""So many are needed to be told apart by the hour of the day."""
HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class CapacityObservation:
    """One launch of one run: `at`, when its machines were asked for."""

    at: datetime
    on: str
    cloud: str
    rental: Rental

    @property
    def where(self) -> str:
        """The zone, or the region where any of its zones would do."""
        return self.rental.market.zone or self.rental.market.region


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was seen of one size of one type on one market of a place. `got_by_hour`: UTC hour: tries, and how many
    of them got machines; empty while there are few tries."""

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
        """Of the tries that got machines."""
        return self.got / self.tries


def observations_of(lines: Sequence[Line]) -> Iterator[CapacityObservation]:
    """What the launches of a run have seen. Machines that no cloud rents out are left out: they have no region."""
    started = lines[0].entry
    assert isinstance(started, Started)
    for line in lines:
        if not isinstance(line.entry, Settled):
            continue
        order, m = line.entry.launch, line.entry.measurement
        offer = order.rented.offer
        nobody_saw = m.outcome is Outcome.INTERRUPTED and not m.startup_s
        if not offer.region or nobody_saw:
            continue
        market = order.market or Market(offer.zone, offer.spot, offer.usd_per_hour, offer.region)
        rental = Rental.of(market, m, line.elapsed_s)
        yield CapacityObservation(
            lines[0].written_at + timedelta(seconds=rental.began_s), started.job.on, offer.cloud, rental
        )


def all_observations(ledger: Ledger) -> list[CapacityObservation]:
    """What all runs have seen, the oldest first. Damaged runs are passed over."""
    found: list[CapacityObservation] = []
    for run in ledger.runs():
        with suppress(LedgerCorrupt):
            found += observations_of(ledger.lines(run))
    return sorted(found, key=lambda look: look.at)


def rentals_before(
    ledger: Ledger, job: Job, instance_types: Collection[str], now: datetime, owner: str | None = None
) -> tuple[Rental, ...]:
    """What runs at the same place have lately seen of these types, the oldest first, on the clock of a run that begins
    now. `owner`: of whom the runs are, where members share a ledger."""
    found: list[Rental] = []
    for run in ledger.runs_at(job.on, MOST_RUNS, owner):
        with suppress(LedgerCorrupt):
            for look in observations_of(ledger.lines(run)):
                rental = look.rental
                if look.on == job.on and rental.instance_type in instance_types and now - look.at < REMEMBERED:
                    began_s = (look.at - now).total_seconds()
                    ended_s = began_s + rental.ended_s - rental.began_s
                    found.append(replace(rental, began_s=began_s, ended_s=min(0.0, ended_s)))
    return tuple(sorted(found, key=lambda rental: rental.ended_s))


def capacity(looks: Iterable[CapacityObservation]) -> list[Capacity]:
    """What was seen of each size of each type, by place, zone and market."""
    groups: dict[tuple[str, str, str, str, int, bool], list[CapacityObservation]] = {}
    for look in looks:
        rental = look.rental
        key = (look.on, look.cloud, rental.instance_type, look.where, rental.nodes, not rental.market.spot)
        groups.setdefault(key, []).append(look)
    return [_capacity(groups[key]) for key in sorted(groups)]


def _capacity(looks: Sequence[CapacityObservation]) -> Capacity:
    first, came = looks[0], [look for look in looks if look.rental.came]
    lives = [(look.rental.ended_s - look.rental.began_s) / HOUR_S for look in came]
    starts = sorted(look.rental.startup_s for look in came if look.rental.startup_s)
    return Capacity(
        on=first.on,
        cloud=first.cloud,
        zone=first.where,
        instance_type=first.rental.instance_type,
        nodes=first.rental.nodes,
        market="spot" if first.rental.market.spot else "on demand",
        tries=len(looks),
        got=len(came),
        taken_back=sum(look.rental.taken_back for look in came),
        mean_life_h=fmean(lives) if lives else None,
        startup_median_s=_quantile(starts, 50),
        startup_p99_s=_quantile(starts, 99),
        last_got=max((look.at for look in came), default=None),
        last_seen=max(look.at for look in looks),
        got_by_hour=_by_hour(looks) if len(looks) >= ENOUGH_TRIES else {},
    )


def _quantile(values: Sequence[float], percent: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _by_hour(looks: Iterable[CapacityObservation]) -> dict[int, tuple[int, int]]:
    counts: dict[int, tuple[int, int]] = {}
    for look in looks:
        tries, got = counts.get(look.at.hour, (0, 0))
        counts[look.at.hour] = tries + 1, got + look.rental.came
    return dict(sorted(counts.items()))
