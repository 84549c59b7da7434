"""Which machine a run has to wait for, and what can be done when that one never comes back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.ledgers import SPACE
from mlcd_fixtures.postgres import PostgresServer

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Ended, Ledger, Reserved, Settled, Started, Status
from mlcd.core.runs.run_machine import claim_for_this_machine, other_machine
from mlcd.service.team.administration import Audit
from mlcd.service.workers.cleanup import give_up_machine
from mlcd.service.workers.queue import Queue
from mlcd.service.workers.run import AlreadyDriven, see_through, take_down

Mlcd = Callable[..., Any]
Move = Callable[[str], None]


@dataclass
class Ago(VirtualClock):
    """The clock of somebody who began so many hours ago."""

    hours: float = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(hours=self.hours)


@pytest.fixture(scope="module")
def ledger(running_postgres: PostgresServer):
    """A team's, for all tests: each has runs of its own."""
    with closing(Ledger(running_postgres.new_database())) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture
def move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    """Goes to another machine."""
    return lambda machine: monkeypatch.setenv("MLCD_HOME", str(tmp_path / machine))


def order(label: str, lifetime_s: float | None = None, place: int = 0) -> Launch:
    return Launch(label, SPACE.configurations[0], Purpose.PROBE, 1.0, lifetime_s, place)


def resting(ledger: Ledger, on: str, hours: float = 0.0) -> str:
    started = Started(Job("lost", 1.0, on=on), SPACE, on, Provenance.LIVE, "0")
    return ledger.begin("lost", Ago(hours=hours), started).run


def with_open_launches(ledger: Ledger, on: str, *lifetimes_s: float | None, hours: float = 0.0) -> str:
    """A run that began so long ago, and whose process died while launches were under way."""
    run = resting(ledger, on, hours)
    orders = [order(f"{run}-{i + 1}", lifetime_s, i) for i, lifetime_s in enumerate(lifetimes_s)]
    ledger.book(run, Ago(60.0, hours)).write(*(Reserved(each, "a try", 1.0, 1.0) for each in orders))
    return run


def lost(ledger: Ledger, move: Move, on: str, *lifetimes_s: float | None, hours: float = 0.0) -> str:
    """The same, seen from another machine."""
    run = with_open_launches(ledger, on, *lifetimes_s, hours=hours)
    move("there")
    claim_for_this_machine(run, ledger)
    move("here")
    return run


def test_what_a_run_left_open_is_torn_down_only_on_the_machine_that_launched_it(ledger: Ledger, move: Move):
    run = lost(ledger, move, "local", None)
    before = ledger.last_seq()
    for drive in (see_through, take_down):
        with pytest.raises(AlreadyDriven, match="it waits for a worker there"):
            drive(run, ledger)
    assert ledger.last_seq() == before
    move("there")
    take_down(run, ledger)
    assert ledger.account(run).open == ()
    assert ledger.account(run).status is Status.STOPPED


@pytest.mark.parametrize(
    ("on", "waits"), [("local", True), ("functions", True), ("skypilot", False), ("simulated", False)]
)
def test_where_nothing_is_open_only_a_machines_own_nodes_are_waited_for(
    ledger: Ledger, move: Move, on: str, waits: bool
):
    run = resting(ledger, on)
    assert other_machine(run, ledger) is None, "nobody has claimed it"
    move("here")
    claim_for_this_machine(run, ledger)
    assert other_machine(run, ledger) is None
    move("there")
    assert (other_machine(run, ledger) is not None) == waits
    assert other_machine(run, ledger, will_launch=False) is None
    ledger.book(run, VirtualClock()).write(Ended(True, "done"))
    assert other_machine(run, ledger) is None, "and nothing at all when it is over"
    if on == "local":
        see_through(run, ledger)  # by a worker that was sent before that, and has nothing to do


def test_a_command_on_another_machine_says_where_to_go_and_writes_nothing(
    postgres_url: str, mlcd: Mlcd, move: Move, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLCD_DATABASE_URL", postgres_url)
    with closing(Ledger(postgres_url)) as ledger:
        run = lost(ledger, move, "local", None)
        before = ledger.last_seq()
        for command in (("resume", run), ("down", run)):
            complaint = mlcd(*command).complaint
            assert "belongs to " in complaint
            assert f"mlcd down {run} --machine-gone" in complaint
        assert f"{run}: not cleaned: run '{run}' belongs to" in mlcd("clean").out
        assert ledger.last_seq() == before


@SLOW
@given(
    hours=st.floats(0.1, 1_000.0),
    lifetimes_s=st.lists(st.none() | st.floats(1.0, 1e6), max_size=3),
    on=st.sampled_from(["local", "functions", "skypilot", "ray"]),
)
def test_what_was_open_on_a_lost_machine_counts_at_the_most_it_can_have_cost(ledger, homes, hours, lifetimes_s, on):
    with pytest.MonkeyPatch.context() as patch:
        move = lambda name: patch.setenv("MLCD_HOME", str(homes / name))  # noqa: E731
        run = lost(ledger, move, on, *lifetimes_s, hours=hours)
        if not lifetimes_s and on in ("skypilot", "ray"):
            with pytest.raises(WrongState, match="waits for no other machine"):
                give_up_machine(run, ledger)
            return
        give_up_machine(run, ledger)
        since_s = hours * 3_600 - 60  # they were reserved a minute after the run began
        expected = [since_s if each is None else min(since_s, each) for each in lifetimes_s]
        settled = [line.entry for line in ledger.lines(run) if isinstance(line.entry, Settled)]
        assert [each.measurement.seconds for each in settled] == pytest.approx(expected, abs=5.0)
        for each in settled:
            assert each.measurement.usd == pytest.approx(each.launch.configuration.usd(each.measurement.seconds))
        account = ledger.account(run)
        assert account.open == ()
        assert account.history.spent_usd == pytest.approx(sum(each.measurement.usd for each in settled))
        assert account.status is (Status.FAILED if on in ("local", "functions") else Status.STOPPED)
        assert other_machine(run, ledger) is None


def test_a_run_on_nodes_of_the_lost_machine_itself_is_over_and_says_why(ledger: Ledger, move: Move):
    run = lost(ledger, move, "local", 30.0)
    words = give_up_machine(run, ledger)
    last = ledger.lines(run)[-1].entry
    assert isinstance(last, Ended)
    assert "begin it anew" in last.because
    assert "the most it can have cost" in words
    with pytest.raises(WrongState, match="is failed and waits for no other machine"):
        give_up_machine(run, ledger)


def test_no_machine_is_given_up_that_is_this_one_or_that_works(ledger: Ledger, move: Move):
    run = lost(ledger, move, "skypilot", 30.0)
    before = ledger.last_seq()
    with closing(Ledger(ledger.database.url)) as there, there.hold(run), pytest.raises(WrongState, match="driven"):
        give_up_machine(run, ledger)
    move("there")
    with pytest.raises(WrongState, match="waits for no other machine"):
        give_up_machine(run, ledger)
    assert ledger.last_seq() == before


def test_down_machine_gone_on_the_database_is_audited_and_no_worker_goes_on_unasked(
    ledger: Ledger, mlcd: Mlcd, move: Move, monkeypatch: pytest.MonkeyPatch
):
    run = lost(ledger, move, "skypilot", 30.0)
    monkeypatch.setenv("MLCD_DATABASE_URL", ledger.database.url)
    with closing(Queue(ledger)) as queue:
        queue.send(run)
        said = mlcd("down", run, "--machine-gone").out
        assert f"go on with: mlcd resume {run}" in said
        with ledger.database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM procrastinate_jobs").scalar() == 0, "nor its errand"
        queue.send(run)  # again: it waits there no more
    entry = Audit(ledger.database, lambda: datetime.now(UTC)).entries(1)[0]
    assert (entry.action, entry.about) == ("machine gone", run)
    assert "counts $" in entry.detail
