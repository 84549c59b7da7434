"""A database of each kind with a ledger on it, members, and a time of day that a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.database import Database, open_database
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Decided, Ended, Entry, Ledger, Reserved, Settled, Started, Stopped, Voided
from mlcd.core.measurement import Measurement, Outcome
from mlcd.service.team.members import Members

SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1,)),))
PLACE = SPACE.configurations[0]


@dataclass
class Day:
    """A time of day that moves when it is told to."""

    time: datetime = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def pass_by(self, **time: float) -> None:
        self.time += timedelta(**time)


@dataclass
class Dated(VirtualClock):
    """A run's clock, whose time of day is the test's."""

    day: Day = field(default_factory=Day)

    def now(self) -> datetime:
        return self.day.now()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A fresh one of each kind."""
    where = tmp_path / "ledger.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with closing(open_database(where)) as opened:
        yield opened


@pytest.fixture
def ledger(database: Database) -> Iterator[Ledger]:
    """The ledger on that database."""
    with closing(Ledger(database)) as opened:
        yield opened


@pytest.fixture
def day() -> Day:
    return Day()


@pytest.fixture
def members(database: Database, day: Day) -> Members:
    return Members(database, day.now)


class Driven:
    """Whoever drives runs, step by step: writes what the loop of a real run would write."""

    def __init__(self, ledger: Ledger, day: Day) -> None:
        self.ledger = ledger
        self.clock = Dated(day=day)

    def begin(self, run: str, job: Job, provenance: Provenance = Provenance.SIMULATED) -> None:
        first = Started(job, SPACE, "simulated", provenance, "0")
        self.ledger.begin(job.name, self.clock, first, run=run)

    def reserve(self, run: str, usd: float) -> None:
        account = self.ledger.account(run)
        purpose = Purpose.PROBE if account.decision is None else Purpose.RUN
        order = Launch(f"{run}-{account.orders + 1}", PLACE, purpose, 1.0, None, account.launches, account.rounds)
        self._write(run, Reserved(order, "to see", usd, 60.0))

    def settle(self, run: str, usd: float) -> None:
        (reserved,) = self.ledger.account(run).open
        self._write(run, Settled(reserved.launch, Measurement(PLACE, Outcome.OK, 60.0, usd, 1.0)))

    def void(self, run: str) -> None:
        (reserved,) = self.ledger.account(run).open
        self._write(run, Voided(reserved.launch, "no machine was left"))

    def decide(self, run: str, feasible: bool = True) -> None:
        self._write(run, Decided(Decision(PLACE if feasible else None, "enough", feasible)))

    def stop(self, run: str) -> None:
        self._write(run, Stopped("interrupted by the user"))

    def end(self, run: str) -> None:
        self._write(run, Ended(True, "the job ran to its end"))

    def _write(self, run: str, entry: Entry) -> None:
        self.ledger.append(run, self.clock, [entry])


@pytest.fixture
def driven(ledger: Ledger, day: Day) -> Driven:
    return Driven(ledger, day)
