"""What the process of a run is told: it ends at once, but never tears a transaction of the ledger apart."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from in_the_middle import begun

from mlcd.core.clock import VirtualClock
from mlcd.core.errors import Interrupted
from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Resumed, Status, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run import start
from mlcd.service.workers.run import see_through
from mlcd.service.workers.stop_requests import BY_THE_USER, HAND_OVER, StopRequests
from mlcd.service.workers.submissions import NEVER_BEGAN, to_json

LONG_S = 300.0


def test_sigint_only_asks_to_stop(home: Path):
    told = StopRequests("any", open_ledger(home))
    with told.listening():
        assert not told.stop()
        signal.raise_signal(signal.SIGINT)
        assert told.stop()


def test_sigterm_ends_it_now_but_not_in_the_middle_of_an_entry_and_not_twice(home: Path, recorded: Job):
    ledger = open_ledger(home)
    run = start(recorded, ledger, lambda line: signal.raise_signal(signal.SIGTERM) if line.seq > 1 else None)
    told, written = StopRequests(run.name, ledger), []

    def write() -> None:
        run.book.write(Stopped("while this is written, the signal comes"))
        written.append("whole")
        threading.Event().wait(LONG_S)

    with told.listening():
        with pytest.raises(KeyboardInterrupt):
            write()
        run.book.write(Resumed("and once more; tearing down is not disturbed"))
    assert written == ["whole"]
    assert len(ledger.lines(run.name)) == 3
    ledger.close()


def test_a_wish_to_take_it_down_interrupts_a_wait(home: Path, recorded: Job):
    ledger = Ledger(home / "ledger.db")
    run = start(recorded, ledger).name
    told = StopRequests(run, ledger, every_s=0.01)

    def wish_and_wait() -> None:
        with told.listening():
            ledger.request_action(run, "down")  # from here on it may be heard at any moment
            threading.Event().wait(LONG_S)

    with pytest.raises(KeyboardInterrupt):
        wish_and_wait()
    assert told.because == BY_THE_USER
    ledger.close()


def test_whoever_is_told_to_leave_leaves_between_two_steps_unless_the_user_wants_it_stopped(home: Path):
    told = StopRequests("any", open_ledger(home), queued=True)
    with told.listening():
        assert not told.hands_over
        signal.raise_signal(HAND_OVER)
        assert told.hands_over
        with pytest.raises(Interrupted):
            told.stop()
        signal.raise_signal(signal.SIGINT)
        assert told.stop()
        assert not told.hands_over


def test_whoever_is_told_to_end_while_an_entry_is_written_leaves_the_run_unstopped(home: Path, recorded: Job):
    ledger = open_ledger(home)
    run = start(recorded, ledger, lambda line: signal.raise_signal(signal.SIGTERM) if line.seq > 1 else None)
    told, between = StopRequests(run.name, ledger, queued=True), []

    def write() -> None:
        run.book.write(Resumed("while this is written, the signal comes"))
        try:
            told.stop()  # as the loop asks before its next step
        except Interrupted:
            between.append("left")
        threading.Event().wait(LONG_S)

    with told.listening(), pytest.raises(KeyboardInterrupt):
        write()
    assert between == ["left"]
    assert told.hands_over
    ledger.close()


class CutOff:
    """A profiler whose process is told to end in the middle of a probe."""

    def measure(self, *asked: object) -> Measurement:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it went on")

    def reclaim(self, label: str) -> float | None:
        return None


@pytest.mark.parametrize("queued", [True, False])
def test_a_probe_that_is_cut_off_is_paid_for_and_its_run_is_stopped_only_where_nobody_goes_on(queued, home, recorded):
    ledger = open_ledger(home)
    run = start(recorded, ledger)
    told = StopRequests(run.name, ledger, queued=queued)
    run = replace(run, cloud=replace(run.cloud, profiler=CutOff()))
    with told.listening(), pytest.raises(Interrupted):
        run.search(told.stop)
    account = ledger.account(run.name)
    assert account.open == ()
    assert [m.outcome for m in account.history.measurements] == [Outcome.INTERRUPTED]
    assert account.stopped is not queued
    ledger.close()


class LeavesAfter(StopRequests):
    """Told to leave after so many steps."""

    def __init__(self, run: str, ledger: Ledger, steps: int) -> None:
        super().__init__(run, ledger, queued=True)
        self._left = iter(range(steps))

    def stop(self) -> bool:
        if next(self._left, None) is None:
            self._on_signal(HAND_OVER, None)
        return super().stop()


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_run_that_a_worker_leaves_is_not_stopped_and_ends_as_if_it_had_not_been_left(steps, home, recorded, tmp_path):
    ledger, direct = open_ledger(home), Ledger(tmp_path / "direct.db")
    run, whole = begun(ledger, recorded, 1), start(recorded, direct)
    see_through(run, ledger, requests=LeavesAfter(run, ledger, steps))
    assert not ledger.is_driven(run)
    account = ledger.account(run)
    assert account.open == ()
    assert account.status is Status.SEARCHING
    see_through(run, ledger)
    whole.search()
    assert ledger.account(run).history.measurements == direct.account(whole.name).history.measurements
    assert ledger.account(run).decision == direct.account(whole.name).decision
    for each in (ledger, direct):
        each.close()


@pytest.mark.parametrize("queued", [True, False])
def test_a_run_that_is_cut_off_keeps_its_claim_only_where_another_worker_goes_on(queued, home, recorded):
    ledger = open_ledger(home)
    run = begun(ledger, recorded)
    ledger.book(run, VirtualClock()).write(Resumed("a worker went on"))
    see_through(run, ledger, requests=EndsAtOnce(run, ledger, queued=queued))
    assert ledger.account(run).stopped is not queued
    ledger.close()


class EndsAtOnce(StopRequests):
    """Told to end in the moment before the run begins."""

    def check(self) -> None:
        self._on_signal(self.number, None)

    number = signal.SIGTERM


class StopsAtOnce(EndsAtOnce):
    number = signal.SIGINT


@pytest.mark.parametrize(("told", "refused"), [(EndsAtOnce, None), (StopsAtOnce, NEVER_BEGAN)])
def test_a_run_that_its_worker_leaves_before_it_began_is_another_ones_to_begin(told, refused, home, simulated):
    ledger = open_ledger(home)
    run = ledger.submit(simulated.name, to_json(simulated, False))
    see_through(run, ledger, requests=told(run, ledger))
    (waiting,) = ledger.waiting()
    assert (waiting.run, waiting.refused) == (run, refused)
    ledger.close()
