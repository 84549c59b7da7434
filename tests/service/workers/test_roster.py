"""Who drives what and what waits, on a real queue; the time is the test's."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

from mlcd.core.ledger import Ledger
from mlcd.service.workers.queue import Queue
from mlcd.service.workers.roster import read_roster, register_worker
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.fixture
def ledger(postgres_url):
    with closing(Ledger(postgres_url)) as ledger:
        yield ledger


@pytest.fixture
def queue(ledger):
    with closing(Queue(ledger)) as queue:
        yield queue


def worker(ledger, seen_at=NOON, slots=4):
    """The number of a worker that gave a sign of life then."""
    with ledger.database.write() as connection:
        query = f"INSERT INTO procrastinate_workers (last_heartbeat) VALUES ('{seen_at.isoformat()}') RETURNING id"
        number = connection.exec_driver_sql(query).scalar_one()
    register_worker(ledger.database, number, slots)
    return number


def take(ledger, number):
    """A worker takes whichever run is next."""
    query = f"SELECT args ->> 'run' FROM mlcd_fetch_job_v1(ARRAY['mlcd']::varchar[], {number}, 4)"
    with ledger.database.write() as connection:
        return connection.exec_driver_sql(query).scalar()


def submitted(ledger, queue, job, owner):
    run = ledger.submit(job.name, to_json(job, True), owner)
    queue.send(run)
    return run


def test_a_worker_tells_where_it_is_what_it_drives_and_since_when(ledger, queue, simulated):
    run, number = submitted(ledger, queue, simulated, "ada"), worker(ledger)
    assert take(ledger, number) == run
    roster = read_roster(ledger.database, NOON + timedelta(seconds=5))
    (one,) = roster.workers
    assert one.alive
    assert (one.number, one.slots, one.seen_at) == (number, 4, NOON)
    assert one.host
    assert one.process
    assert one.since is not None
    found = roster.driver(run)
    assert found is not None
    assert (found[0], found[1].member) == (one, "ada")
    assert found[1].since is not None
    assert roster.waiting == ()


def test_a_worker_without_a_sign_of_life_for_ten_seconds_is_dead_and_its_run_still_shows(ledger, queue, simulated):
    run, number = submitted(ledger, queue, simulated, "ada"), worker(ledger)
    take(ledger, number)
    for passed_s, alive in ((10, 1), (11, 0)):
        roster = read_roster(ledger.database, NOON + timedelta(seconds=passed_s))
        assert roster.alive == alive
        assert roster.driver(run) is not None
    worker(ledger)  # one that died long ago, with nothing in its hands
    assert len(read_roster(ledger.database, NOON + timedelta(hours=1)).workers) == 1


def test_the_order_of_the_queue_is_that_in_which_workers_take_runs(ledger, queue, simulated):
    real = replace(simulated, name="real", on="local")
    runs = {
        submitted(ledger, queue, job, owner)
        for owner, job in (("ada", simulated), ("ada", simulated), ("ben", simulated), ("ben", real), ("cy", simulated))
    }
    number = worker(ledger)
    taken = []
    for _ in range(3):  # a worker keeps one of its four slots for runs on real machines
        roster = read_roster(ledger.database, NOON)
        assert [each.place for each in roster.waiting] == list(range(1, len(roster.waiting) + 1))
        assert {each.run for each in roster.waiting} == runs - set(taken)
        taken.append(take(ledger, number))
        assert roster.waiting[0].run == taken[-1]


def test_a_single_run_is_not_behind_the_whole_sweep_of_another(ledger, queue, simulated):
    sweep = [submitted(ledger, queue, simulated, "ada") for _ in range(4)]
    single = submitted(ledger, queue, simulated, "ben")
    places = [each.run for each in read_roster(ledger.database, NOON).waiting]
    assert places == [sweep[0], single, *sweep[1:]]
    number = worker(ledger)
    assert take(ledger, number) == sweep[0]
    with ledger.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM procrastinate_jobs WHERE lock = %s", (sweep[0],))
    assert [each.run for each in read_roster(ledger.database, NOON).waiting] == [single, *sweep[1:]]
    assert take(ledger, number) == single


def test_who_signs_on_again_is_listed_once_and_those_who_left_the_queue_are_forgotten(ledger, queue):
    gone, here = worker(ledger), worker(ledger)
    with ledger.database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM procrastinate_workers WHERE id = {gone}")
    register_worker(ledger.database, here, 8)
    with ledger.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT number, slots FROM workers").all()
    assert [tuple(each) for each in rows] == [(here, 8)]
