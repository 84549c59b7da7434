"""Machines that nobody looks after any more are news: of a run whose driver is gone, and of a failed teardown."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from mlcd.core.backend import Provenance
from mlcd.core.errors import LedgerUnreachable
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Status
from mlcd.service.notifications.abandoned_runs import GRACE, NOBODY, AbandonedRunDetector
from mlcd.service.notifications.reader import NotificationReader
from mlcd.service.workers.submissions import to_json

RUN = "resnet-1"


@pytest.fixture
def look(ledger: Ledger, day: Any) -> AbandonedRunDetector:
    return AbandonedRunDetector(ledger, day.now)


def told(ledger: Ledger) -> list[tuple[str, str]]:
    return [(news.event, news.words) for news in NotificationReader(ledger).after(0).notifications]


def begin(driven: Any, provenance: Provenance = Provenance.LIVE) -> None:
    job = Job("resnet", 1.0)
    assert driven.ledger.submit(job.name, to_json(job, False)) == RUN
    driven.begin(RUN, job, provenance)
    driven.reserve(RUN, 5.0)


def test_a_run_that_nobody_drives_is_stopped_and_told_once(ledger: Ledger, driven: Any, look: AbandonedRunDetector):
    begin(driven)
    look.look()
    assert told(ledger) == []
    driven.clock.day.pass_by(seconds=GRACE.total_seconds())
    for _ in range(3):
        look.look()
    AbandonedRunDetector(ledger, driven.clock.day.now).look()
    machines = f"{NOBODY}. 1 machine may still be billed; end them with: mlcd down {RUN}"
    assert told(ledger) == [("left_behind", machines)]
    account = ledger.account(RUN)
    assert (account.status, len(account.open)) == (Status.STOPPED, 1)


def test_a_new_driver_or_an_end_in_time_is_no_news(ledger: Ledger, driven: Any, look: AbandonedRunDetector):
    begin(driven)
    look.look()
    driven.clock.day.pass_by(seconds=GRACE.total_seconds() - 1)
    look.look()
    driven.settle(RUN, 1.0)
    driven.clock.day.pass_by(seconds=GRACE.total_seconds())
    look.look()
    assert told(ledger) == []


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_run_that_another_process_drives_is_left_alone(ledger: Ledger, driven: Any, look: AbandonedRunDetector):
    begin(driven)
    with closing(Ledger(ledger.database.url)) as elsewhere, elsewhere.hold(RUN):
        for _ in range(2):
            look.look()
            driven.clock.day.pass_by(seconds=GRACE.total_seconds())
    assert told(ledger) == []
    for _ in range(2):
        look.look()
        driven.clock.day.pass_by(seconds=GRACE.total_seconds())
    assert [event for event, _ in told(ledger)] == ["left_behind"]


def test_a_simulated_run_has_no_machines(ledger: Ledger, driven: Any, look: AbandonedRunDetector):
    begin(driven, Provenance.SIMULATED)
    for _ in range(2):
        look.look()
        driven.clock.day.pass_by(seconds=GRACE.total_seconds())
    assert told(ledger) == []


def test_after_an_outage_of_the_database_drivers_have_all_their_time_again(ledger: Ledger, driven: Any, day: Any):
    begin(driven)

    class Away:
        """The ledger, whose database is away now and then."""

        away = False

        def __getattr__(self, name: str) -> Any:
            return getattr(ledger, name)

        def driven(self) -> set[str]:
            if self.away:
                raise LedgerUnreachable("away", "database")
            return ledger.driven()

    seen: Any = Away()
    look = AbandonedRunDetector(seen, day.now)
    look.look()
    seen.away = True
    day.pass_by(seconds=GRACE.total_seconds())
    with pytest.raises(LedgerUnreachable):
        look.look()
    seen.away = False
    look.look()
    assert told(ledger) == []
    day.time += timedelta(seconds=GRACE.total_seconds())
    look.look()
    assert [event for event, _ in told(ledger)] == ["left_behind"]


def test_a_stop_with_machines_that_could_not_be_torn_down_is_told_at_once(ledger: Ledger, driven: Any):
    begin(driven)
    driven.stop(RUN)
    assert [event for event, _ in told(ledger)] == ["left_behind"]


def test_a_stop_that_left_nothing_is_no_news(ledger: Ledger, driven: Any):
    begin(driven)
    driven.settle(RUN, 1.0)
    driven.stop(RUN)
    assert told(ledger) == []
