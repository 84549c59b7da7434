"""Who drives a run and what waits, as members are told; the time is the test's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from stage import API, staged

from mlcd.service.web.state import NO_WORKER
from mlcd.service.workers.roster import Driving, Roster, Waiting, Worker

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        yield stage


@pytest.fixture
def runs(stage):
    return [stage.submit("ron").json()["run"] for _ in range(3)]


def seen(stage, after_s, driven=(), waiting=(), others=()):
    """The roster so long after the last sign of life of its worker."""
    at = NOON + timedelta(seconds=after_s)
    taken = tuple(Driving(run, "see through", "ron", NOON) for run in driven)
    one = Worker(1, NOON, after_s <= 10, taken, "box-1", 77, 4, "1.0", NOON - timedelta(hours=1))
    queue = tuple(Waiting(run, "see through", "ron", i, NOON, None) for i, run in enumerate(waiting, 1))
    stage.executor.roster = lambda: Roster(at, (one, *others), queue)


def told(stage, run, who="vera"):
    return stage.ask("GET", f"{API}/runs/{run}/driver", who).json()


def test_every_member_sees_who_drives_what_since_when_and_the_last_sign_of_life(stage, runs):
    seen(stage, 3, runs[:1], runs[1:])
    answer = stage.ask("GET", f"{API}/workers", "vera").json()
    (worker,) = answer["workers"]
    assert (worker["host"], worker["process"], worker["alive"], worker["silent_s"]) == ("box-1", 77, True, 3.0)
    assert [(each["run"], each["member"]) for each in worker["runs"]] == [(runs[0], "ron")]
    assert datetime.fromisoformat(worker["runs"][0]["since"]) == NOON
    assert [(each["place"], each["run"]) for each in answer["waiting"]] == [(1, runs[1]), (2, runs[2])]
    assert answer["trouble"] == ""
    assert stage.ask("GET", f"{API}/workers").status == 401


def test_who_waits_is_told_their_place_in_the_queue(stage, runs):
    seen(stage, 0, runs[:1], runs[1:])
    answer = told(stage, runs[2])
    assert (answer["state"], answer["place"], answer["waiting"]) == ("waits", 2, 2)
    assert answer["words"] == "waits for a worker: 2 of 2 in the queue"
    driven = told(stage, runs[0])
    assert (driven["state"], driven["words"]) == ("driven", "driven by worker 1 on box-1")


def test_who_waits_for_nobody_is_told_that_no_worker_is_running(stage, runs):
    seen(stage, 11, (), runs)
    assert told(stage, runs[0])["words"] == NO_WORKER
    assert stage.ask("GET", f"{API}/workers", "vera").json()["trouble"] == NO_WORKER


def test_a_dead_worker_shows_within_seconds_where_its_run_is_shown(stage, runs):
    seen(stage, 10, runs[:1])
    assert told(stage, runs[0])["state"] == "driven"
    seen(stage, 11, runs[:1])
    answer = told(stage, runs[0])
    assert answer["state"] == "silent"
    assert answer["words"] == f"its worker on box-1 has sent no heartbeat for 11 s; {NO_WORKER}"
    alive = Worker(2, NOON + timedelta(seconds=11), True, ())
    seen(stage, 11, runs[:1], others=(alive,))
    assert told(stage, runs[0])["words"].endswith("another one takes over")


def test_a_run_that_nobody_has_and_one_that_is_not_there(stage, runs):
    seen(stage, 0)
    assert (told(stage, runs[0])["state"], told(stage, runs[0])["words"]) == ("nobody", "")
    assert stage.ask("GET", f"{API}/runs/nothing/driver", "vera").status == 404


def test_one_persons_pages_tell_what_this_process_drives(tmp_path):
    with staged(tmp_path / "home", mode="ui") as alone:
        run = alone.submit().json()["run"]
        assert alone.ask("GET", f"{API}/workers").json()["waiting"][0]["run"] == run
