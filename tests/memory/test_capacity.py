"""Observed capacity of clouds is read from the ledger, and passed to the next run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Book, Ledger, Reserved, Settled, Started
from mlcd.core.ledger.entries import from_json, to_json
from mlcd.core.market import Market
from mlcd.core.measurement import Measurement, Outcome
from mlcd.memory.capacity import REMEMBERED, all_observations, capacity, rentals_before
from mlcd.planners.train.planner import PLANNER

START = datetime(2026, 3, 2, 6, 30, tzinfo=UTC)
OFFER = Offer("p5.48xlarge", 98.0, 192, 2048, "H100", 8, cloud="aws", region="us-east-1")
SPACE = Space((Choice(OFFER, (1, 2)),))
A, B = (Market(zone, True, 30.0, "us-east-1") for zone in ("us-east-1a", "us-east-1b"))
JOB = Job("job", 1e6, Goal(Objective.CHEAPEST), on="skypilot:aws", task={"resources": {"use_spot": "any"}})


@dataclass
class HandClock:
    """A real place's clock, without waiting."""

    began: datetime
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.began + timedelta(seconds=self.seconds)

    def elapsed_s(self) -> float:
        return self.seconds


def begin(ledger: Ledger, at: datetime = START, job: Job = JOB) -> tuple[Book, HandClock]:
    clock = HandClock(at)
    first = Started(job, SPACE, job.on, Provenance.LIVE, "0")
    return ledger.begin(job.name, clock, first), clock  # type: ignore[arg-type]


def launched(
    book: Book,
    clock: HandClock,
    outcome: Outcome,
    hours: float,
    nodes: int = 1,
    market: Market | None = A,
    startup_s: float = 0.0,
) -> None:
    """One launch, from its order to its end."""
    configuration = Configuration(OFFER, nodes)
    purpose = Purpose.PROBE if market is None else Purpose.RUN
    order = Launch(f"{book.run}-{book.account.orders + 1}", configuration, purpose, 1.0, None, 0, market=market)
    book.write(Reserved(order, "", 0.0, 0.0))
    clock.seconds += hours * 3_600
    usd = 0.0 if outcome is Outcome.LAUNCH_FAILED else hours
    book.write(Settled(order, Measurement(configuration, outcome, hours * 3_600, usd, startup_s=startup_s)))


def test_every_launch_of_every_run_is_a_look() -> None:
    ledger = Ledger(None)
    book, clock = begin(ledger)
    launched(book, clock, Outcome.OK, 0.5, market=None, startup_s=120.0)
    launched(book, clock, Outcome.LAUNCH_FAILED, 0.0)
    launched(book, clock, Outcome.PREEMPTED, 4.0, startup_s=200.0)
    book, clock = begin(ledger, START + timedelta(days=1))
    launched(book, clock, Outcome.OK, 2.0, startup_s=100.0)
    launched(book, clock, Outcome.LAUNCH_FAILED, 0.0, nodes=2)
    on_demand, spot, two = sorted(capacity(all_observations(ledger)), key=lambda each: (each.nodes, each.zone))
    assert (on_demand.zone, on_demand.market, on_demand.tries, on_demand.got) == ("us-east-1", "on demand", 1, 1)
    assert (spot.zone, spot.market, spot.tries, spot.got, spot.taken_back) == ("us-east-1a", "spot", 3, 2, 1)
    assert spot.share == pytest.approx(2 / 3)
    assert spot.mean_life_h == pytest.approx(3.0)
    assert (spot.startup_median_s, spot.startup_p99_s) == pytest.approx((150.0, 199.0))
    assert spot.last_got == START + timedelta(days=1)
    assert (two.nodes, two.got, two.mean_life_h, two.startup_median_s, two.last_got) == (2, 0, None, None, None)


def test_own_machines_and_launches_with_unseen_ends_are_not_observations() -> None:
    ledger = Ledger(None)
    book, clock = begin(ledger)
    launched(book, clock, Outcome.INTERRUPTED, 1.0)
    assert all_observations(ledger) == []
    own = Configuration(replace(OFFER, region=""), 1)
    order = Launch("job-1-9", own, Purpose.PROBE, 1.0, None, 0)
    book.write(Reserved(order, "", 0.0, 0.0), Settled(order, Measurement(own, Outcome.OK, 1.0, 1.0)))
    assert all_observations(ledger) == []


def test_many_attempts_are_split_by_hour_of_the_day() -> None:
    ledger = Ledger(None)
    book, clock = begin(ledger)
    for _ in range(12):
        launched(book, clock, Outcome.LAUNCH_FAILED, 0.0)
    clock.seconds += 3 * 3_600
    for _ in range(12):
        launched(book, clock, Outcome.OK, 0.0)
    (seen,) = capacity(all_observations(ledger))
    assert seen.got_by_hour == {6: (12, 0), 9: (12, 12)}


def test_the_next_run_gets_recent_observations_on_its_own_clock() -> None:
    ledger = Ledger(None)
    book, clock = begin(ledger)
    launched(book, clock, Outcome.PREEMPTED, 2.0)
    launched(book, clock, Outcome.LAUNCH_FAILED, 0.0, market=B)
    other, other_clock = begin(ledger, job=replace(JOB, on="skypilot:gcp"))
    launched(other, other_clock, Outcome.OK, 1.0)
    now = START + timedelta(hours=5)
    lost, refused = rentals_before(ledger, JOB, {"p5.48xlarge"}, now)
    assert (lost.began_s, lost.ended_s, lost.taken_back) == (-5 * 3_600, -3 * 3_600, True)
    assert (refused.market, refused.began_s, refused.refused) == (B, -3 * 3_600, True)
    assert rentals_before(ledger, JOB, {"p4d.24xlarge"}, now) == ()
    assert rentals_before(ledger, JOB, {"p5.48xlarge"}, now + REMEMBERED) == ()


def test_a_run_keeps_the_observations_it_started_with() -> None:
    ledger = Ledger(None)
    book, clock = begin(ledger, datetime.now(UTC) - timedelta(hours=2))
    launched(book, clock, Outcome.LAUNCH_FAILED, 0.0)
    first = Started(JOB, SPACE, JOB.on, Provenance.LIVE, "0")
    recalled = PLANNER.recall(first, ledger, None)
    (refused,) = recalled.rentals_before
    assert refused.began_s == pytest.approx(-2 * 3_600, abs=60)
    assert from_json(to_json(recalled)) == recalled
    again = ledger.begin("job", HandClock(START), recalled)  # type: ignore[arg-type]
    assert ledger.account(again.run).history.rentals_before == recalled.rentals_before
    simulated = replace(first, provenance=Provenance.SIMULATED)
    assert PLANNER.recall(simulated, ledger, None).rentals_before == ()
