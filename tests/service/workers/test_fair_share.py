"""Whose turn it is: nobody starves the others, whatever they send, and runs on real machines go first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")
import psycopg

from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Status, Stopped
from mlcd.service.workers.limits import Caps
from mlcd.service.workers.process import Errand
from mlcd.service.workers.queue import QUEUE, Queue
from mlcd.service.workers.queue_database import prepare
from mlcd.service.workers.run import see_through
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live

AT_MOST, AT_ONCE = 3, 4


@dataclass
class Shares:
    """A queue, and workers that only take."""

    ledger: Ledger
    queue: Queue
    workers: list[int] = field(default_factory=list)
    doing: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Of each run under way: its member, where it is, and who drives it."""
    left: list[str] = field(default_factory=list)
    """Whose runs left their slots, in order."""

    def empty(self) -> None:
        self.doing.clear()
        self.left.clear()
        with self.ledger.database.write() as connection:
            connection.exec_driver_sql("TRUNCATE procrastinate_jobs, mlcd_turns CASCADE")
            connection.exec_driver_sql("DELETE FROM procrastinate_workers")
            query = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
            self.workers = [connection.exec_driver_sql(query).scalar_one() for _ in range(2)]

    def submit(self, member: str, on: str) -> None:
        job = Job("demo", 1.0, on=on)
        self.queue.send(self.ledger.submit(job.name, to_json(job, False), member))

    def take(self, worker: int, slots: int = AT_ONCE) -> str | None:
        """The run that a worker is given."""
        number = self.workers[worker]
        query = f"SELECT args ->> 'run' FROM mlcd_fetch_job_v1(ARRAY['{QUEUE}']::varchar[], {number}, {slots})"
        with self.ledger.database.write() as connection:
            run: str | None = connection.exec_driver_sql(query).scalar()
        if run is not None:
            asked = self.ledger.submission(run)
            assert asked is not None
            self.doing[run] = (str(asked.owner), "local" if '"on":"local"' in asked.request else "simulated", worker)
        return run

    def end(self, run: str) -> None:
        self.left.append(self.doing.pop(run)[0])
        with self.ledger.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM procrastinate_jobs WHERE lock = %s", (run,))

    def waiting(self) -> Counter[tuple[str, str]]:
        query = "SELECT args ->> 'member', args ->> 'computes' FROM procrastinate_jobs WHERE status = 'todo'"
        with self.ledger.database.read() as connection:
            rows = connection.exec_driver_sql(query).all()
        return Counter((member, "simulated" if computes == "true" else "local") for member, computes in rows)


@pytest.fixture(scope="module")
def shares(running_postgres) -> Iterator[Shares]:
    ledger = Ledger(running_postgres.new_database())
    with closing(ledger), closing(Queue(ledger, Caps(running=AT_MOST))) as queue:
        yield Shares(ledger, queue)


def test_a_service_that_starts_waits_for_no_job_that_is_being_changed(running_postgres):
    url = running_postgres.new_database()
    with closing(Ledger(url)) as ledger, closing(Ledger(f"{url}?options=-c%20lock_timeout%3D1s")) as hasty:
        prepare(ledger.database)
        with psycopg.connect(url) as other:
            other.execute("UPDATE procrastinate_jobs SET status = 'todo'")
            prepare(hasty.database)


MEMBERS, PLACES = st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["simulated", "local"])
SENT = st.lists(st.tuples(MEMBERS, PLACES), min_size=1, max_size=14)
MOVES = st.lists(st.tuples(st.sampled_from(["take", "take", "end"]), st.integers(0, 1)), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=SENT, moves=MOVES)
def test_every_member_keeps_to_a_share_and_no_worker_idles_while_somebody_may_run(shares, sent, moves):
    shares.empty()
    for member, on in sent:
        shares.submit(member, on)
    for move, worker in moves:
        if move == "end":
            if shares.doing:
                shares.end(next(iter(shares.doing)))
            continue
        if sum(at == worker for _, _, at in shares.doing.values()) >= AT_ONCE:
            continue  # it asks only while it has a slot
        before = dict(shares.doing)
        allowed = {each for each in shares.waiting() if may_run(before, *each, worker)}
        run = shares.take(worker)
        assert (run is None) == (not allowed)
        if run is not None:
            member, on, _ = shares.doing[run]
            assert (member, on) in allowed
            mine = running(before, member)
            assert mine == min(running(before, each) for each, _ in allowed), "the fewest go first"
            equals = {each for each, _ in allowed if running(before, each) == mine}
            assert last(shares.left, member) == min(last(shares.left, each) for each in equals), "whoever waits longest"
            assert on == "local" or (member, "local") not in allowed, "of one's own, real runs go first"


def running(doing, member: str, worker: int | None = None) -> int:
    return sum(each == member and worker in (None, at) for each, _, at in doing.values())


def last(left: list[str], member: str) -> int:
    """When a run of this member's last left a slot."""
    return max((number for number, each in enumerate(left) if each == member), default=-1)


def may_run(doing, member: str, on: str, worker: int) -> bool:
    computing = sum(place == "simulated" and at == worker for _, place, at in doing.values())
    shared = running(doing, member) < AT_MOST and running(doing, member, worker) < AT_ONCE // 2
    return shared and (on == "local" or computing < AT_ONCE - 1)


@pytest.mark.parametrize(("sweep", "single"), [("simulated", "simulated"), ("local", "simulated")])
@pytest.mark.parametrize("slots", [1, 2])
def test_a_single_run_is_next_when_the_slot_is_free_that_anothers_sweep_has(shares, sweep, single, slots):
    shares.empty()
    for _ in range(6):
        shares.submit("eve", sweep)
    for _ in range(2):
        of_sweep = shares.take(0, slots)
        shares.submit("bob", single)
        shares.end(of_sweep)
        of_bob = shares.take(0, slots)
        assert shares.doing[of_bob][0] == "bob"
        shares.end(of_bob)


def test_workers_look_at_once_when_a_run_has_left_its_slot(shares):
    import psycopg

    shares.empty()
    shares.submit("eve", "simulated")
    run = shares.take(0)
    with psycopg.connect(shares.ledger.database.url, autocommit=True) as listening:
        listening.execute(f'LISTEN "procrastinate_queue_v1#{QUEUE}"'.encode())
        shares.end(run)
        (told,) = listening.notifies(timeout=60.0, stop_after=1)
    assert '"job_inserted"' in told.payload


def test_what_is_taken_down_waits_for_no_share(shares):
    shares.empty()
    for _ in range(AT_MOST + 1):
        shares.submit("eve", "simulated")
    runs = [shares.take(0), shares.take(0), shares.take(1)]
    assert all(runs)
    assert shares.take(1) is None, "eve has her share"
    (last,) = {each.run for each in shares.ledger.waiting() if each.run not in runs} & queued(shares)
    shares.queue.withdraw(last)
    shares.queue._defer(last, Errand.TAKE_DOWN)
    assert shares.take(1) == last


def queued(shares: Shares) -> set[str]:
    with shares.ledger.database.read() as connection:
        return set(connection.exec_driver_sql("SELECT lock FROM procrastinate_jobs WHERE status = 'todo'").scalars())


EXHAUSTIVE = {"method": "exhaustive", "nodes": (1, 100)}


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        (Caps(probes=5), "it has made 5 probes, the most here"),
        (Caps(computing_s=0.0), "it has computed for 0 s, the most at a time"),
    ],
    ids=["probes", "time"],
)
def test_a_run_that_only_computes_is_stopped_at_its_caps_and_says_so(home, simulated, caps, words):
    with closing(open_ledger(home)) as ledger:
        job = replace(simulated, search=replace(simulated.search, **EXHAUSTIVE))
        run = ledger.submit(job.name, to_json(job, False))
        see_through(run, ledger, caps=caps)
        last = ledger.lines(run)[-1].entry
        assert isinstance(last, Stopped)
        assert last.because.startswith(words), last.because
        assert ledger.account(run).status is Status.STOPPED
        assert len(ledger.account(run).history.measurements) <= 5
        see_through(run, ledger)
        assert ledger.account(run).status is not Status.STOPPED, "somebody who lifts the cap goes on"
