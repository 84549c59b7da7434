"""A team's runs, through a real queue on a real PostgreSQL: workers and the database may die, and the runs end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from in_the_middle import Gate, begun

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

from mlcd_fixtures.postgres import PostgresServer

from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Settled, Status, Stopped
from mlcd.core.measurement import Outcome
from mlcd.core.runs.run import start
from mlcd.service.workers.limits import TIMING, Timing
from mlcd.service.workers.queue import Queue
from mlcd.service.workers.submissions import to_json
from mlcd.service.workers.supervise import Supervisor
from mlcd.service.workers.worker import HURRY, cron

pytestmark = pytest.mark.live

Until = Callable[[Callable[[], bool]], None]
QUICK = Timing(heartbeat_s=0.2, silent_s=1.5, sweep_s=1, recheck_s=0.5, poll_s=0.2, retry_s=0.2)


@dataclass
class Service:
    """A service as far as its runs go."""

    home: Path
    server: PostgresServer | None
    ledger: Ledger
    queue: Queue
    workers: Supervisor

    def submit(self, job: Job, launch: bool = True) -> str:
        run = self.ledger.submit(job.name, to_json(job, launch))
        self.queue.send(run)
        return run

    def ask(self, question: str) -> object:
        with self.ledger.database.read() as connection:
            return connection.exec_driver_sql(question).scalar()

    def entries(self, run: str) -> int:
        return sum(line.run == run for line in self.ledger.since(0))

    def is_over(self, run: str) -> bool:
        return run in self.ledger.runs() and self.ledger.account(run).status is Status.FINISHED


@pytest.fixture(scope="module")
def service(running_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    url = running_postgres.new_database()
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("MLCD_HOME", str(home))
        ledger = Ledger(url)
        queue, workers = Queue(ledger), Supervisor(url, workers=1, at_once=4, timing=QUICK)
        yield Service(home, running_postgres, ledger, queue, workers)
        workers.close()
        queue.close()
        ledger.close()


def check_books(ledger: Ledger, run: str) -> None:
    """Nothing is open, what was paid adds up, and every launch is in the books once."""
    account = ledger.account(run)
    settled = [line.entry for line in ledger.lines(run) if isinstance(line.entry, Settled)]
    assert account.open == ()
    assert account.history.spent_usd == pytest.approx(sum(entry.measurement.usd for entry in settled))
    assert account.history.spent_usd <= 100.0
    assert len({entry.launch.label for entry in settled}) == len(settled) > 3
    assert [entry.launch.ordinal for entry in settled] == list(range(len(settled)))


def test_runs_wait_for_a_worker_and_end(service, simulated, until):
    runs = [service.submit(simulated), service.submit(simulated)]
    until(lambda: all(service.is_over(run) for run in runs))
    for run in runs:
        check_books(service.ledger, run)
    assert service.queue.alive() == 1
    assert service.ledger.account(runs[0]).decision == service.ledger.account(runs[1]).decision


@pytest.mark.parametrize("every_s", [QUICK.sweep_s, TIMING.sweep_s])
def test_dead_workers_are_looked_for_as_often_as_is_said_at_any_minute(every_s: int):
    croniter = pytest.importorskip("croniter", reason="comes with procrastinate: pip install 'mlcd[service]'")
    for minute in range(60):
        asked = datetime(2026, 1, 1, 13, minute, 51, tzinfo=UTC)
        comes = croniter.croniter(cron(every_s), asked).get_next(datetime)
        assert comes - asked <= timedelta(seconds=every_s)


def in_the_middle_of(service: Service, job: Job, until: Until, launch: bool = False) -> tuple[int, Gate, str]:
    """A worker, the gate at which its run waits, and that run."""
    until(lambda: len(service.workers.processes()) == 1)
    gate, run = Gate(service.home), begun(service.ledger, job)
    gate.shut()
    service.queue.send(run, launch)
    until(gate.is_reached)
    return service.workers.processes()[0], gate, run


def test_a_worker_that_is_killed_is_replaced_and_its_run_goes_on(service, simulated, until):
    worker, gate, run = in_the_middle_of(service, simulated, until, launch=True)
    between = service.entries(run)
    gate.vanish()
    os.kill(worker, signal.SIGKILL)
    until(lambda: service.workers.processes() not in ([], [worker]))
    until(lambda: service.is_over(run))
    assert service.entries(run) > between
    assert not any(isinstance(line.entry, Stopped) for line in service.ledger.lines(run)[between:])
    check_books(service.ledger, run)
    gate.close()


@pytest.mark.night  # at each change: a worker that is killed, above
def test_a_worker_that_is_told_to_end_leaves_its_run_to_the_next_one(service, simulated, until):
    worker, gate, run = in_the_middle_of(service, simulated, until)
    between = service.entries(run)
    os.kill(worker, signal.SIGTERM)
    gate.open()
    until(lambda: service.workers.processes() not in ([], [worker]))
    until(lambda: service.ledger.account(run).status is Status.DECIDED)
    new = [line.entry for line in service.ledger.lines(run)[between:]]
    assert not any(isinstance(entry, Stopped) for entry in new), "it was never stopped, only left"
    cut = [m for m in service.ledger.account(run).history.measurements if m.outcome is Outcome.INTERRUPTED]
    assert cut == []
    check_books(service.ledger, run)


@pytest.mark.night  # at each change: test_local_executor.py, with workers of `mlcd ui`
def test_ctrl_c_while_a_service_ends_gives_its_runs_no_more_time(postgres_url, home, simulated, until):
    home.mkdir()
    ledger = Ledger(postgres_url)
    workers = Supervisor(postgres_url, workers=1, at_once=1, timing=replace(QUICK, grace_s=3_600.0))
    patient = Service(home, None, ledger, Queue(ledger), workers)
    worker, gate, run = in_the_middle_of(patient, simulated, until)
    between = patient.entries(run)
    gate.vanish()
    os.kill(worker, signal.SIGSTOP)  # it will hear of both in one moment
    until(lambda: is_stopped(worker))  # else it may hear of the first one before it stops

    def press_again() -> None:
        heard = signal.SIGKILL  # so that a test that fails does not take an hour
        try:
            until(lambda: signal.SIGTERM in waiting_for(worker))
            os.kill(os.getpid(), signal.SIGINT)
            until(lambda: {signal.SIGTERM, HURRY} <= waiting_for(worker))
            heard = signal.SIGCONT
        finally:
            os.kill(worker, heard)

    pressing = threading.Thread(target=press_again)
    pressing.start()
    workers.close()
    pressing.join()
    assert not ledger.is_driven(run)
    assert patient.entries(run) == between, "nothing was open, and it was left as it stood"
    patient.queue.close()
    ledger.close()
    gate.close()


def is_stopped(process: int) -> bool:
    """Whether each thread of a process stands still."""
    of_threads = [each.read_text() for each in Path(f"/proc/{process}/task").glob("*/status")]
    return all("\nState:\tT" in status for status in of_threads)


def waiting_for(process: int) -> set[int]:
    """The signals that a process has yet to hear."""
    status = Path(f"/proc/{process}/status").read_text()
    (bits,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("ShdPnd:"))
    return {number for number in range(1, 64) if bits >> (number - 1) & 1}


@pytest.mark.night  # at each change: test_lost_connections.py
def test_a_database_that_is_killed_and_comes_back_loses_nothing(service, simulated, until):
    worker, gate, run = in_the_middle_of(service, simulated, until, launch=True)
    service.server.kill()
    service.server.start()
    gate.open()
    until(lambda: service.is_over(run))
    check_books(service.ledger, run)
    after = service.submit(simulated)
    until(lambda: service.is_over(after))
    assert service.workers.processes() == [worker], "a restart of the database costs no worker"


@pytest.mark.parametrize("how", ["stop", "down"])
def test_a_run_hears_a_wish_that_stands_in_the_database(how, service, simulated, until):
    gate, run = Gate(service.home), begun(service.ledger, simulated)
    before = service.entries(run)
    gate.shut()
    service.queue.send(run)
    until(gate.is_reached)
    if how == "down":
        gate.vanish()  # to end now, it need not open
    getattr(service.queue, how)(run)
    if how == "stop":
        now = service.ask("SELECT now()")
        looks = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT runs.wish%%' AND query_start > '{}'"
        until(lambda: bool(service.ask(looks.format(now))))
        gate.open()
    until(lambda: service.ledger.requested_action(run) is None and not service.ledger.is_driven(run))
    assert service.ledger.account(run).status is Status.STOPPED
    assert service.entries(run) - before <= 2, "resumed, and stopped; nothing was probed"
    service.queue.send(run)
    until(lambda: service.ledger.account(run).status is Status.DECIDED)
    gate.close()


def reader_of(gate: Gate) -> int:
    """The process that waits at a gate."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) == str(gate.path) and int(link.parts[2]) != os.getpid():
                return int(link.parts[2])
    return 0


@pytest.mark.night  # at each change: test_heartbeat.py
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells who has a file open")
def test_a_driver_that_hangs_is_ended_by_its_worker_and_its_run_is_not_tried_again(
    postgres_url, home, simulated, until
):
    timing = replace(QUICK, watch_s=0.1, unresponsive_s=0.5, kill_s=0.2)
    with closing(Ledger(postgres_url)) as ledger, closing(Queue(ledger)) as queue:
        run, gate = start(simulated, ledger).name, Gate(home)
        gate.shut()
        with closing(Supervisor(postgres_url, workers=1, at_once=2, timing=timing)):
            queue.send(run)
            until(gate.is_reached)
            until(lambda: reader_of(gate) != 0)
            os.kill(reader_of(gate), signal.SIGSTOP)
            gate.vanish()
            queue.stop(run)
            until(lambda: ledger.account(run).status is Status.STOPPED and ledger.requested_action(run) is None)
            until(lambda: not queue._queued(run))
        gate.close()
        last = ledger.lines(run)[-1].entry
        assert isinstance(last, Stopped)
        assert "gave no heartbeat" in last.because


def test_what_waits_can_be_stopped_and_what_was_lost_is_adopted(postgres_url: str, simulated: Job, home: Path):
    ledger = Ledger(postgres_url)
    queue = Queue(ledger)  # and no worker
    lost = ledger.submit("demo", to_json(simulated, True))
    assert queue.adopt(older_than=timedelta(minutes=1)) == 0  # its request may be about to queue it
    assert (queue.adopt(), queue.adopt()) == (1, 0)
    with pytest.raises(WrongState, match="waiting for a worker already"):
        queue.send(lost)
    queue.stop(lost)
    refused = ledger.submission(lost)
    assert refused is not None
    assert refused.refused == "stopped before it began"
    with pytest.raises(WrongState, match="not driven"):
        queue.stop(lost)
    assert queue.adopt() == queue.alive() == 0
    queue.close()
    again = Queue(ledger)  # its tables are there
    again.close()
    ledger.close()
