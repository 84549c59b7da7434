"""The wall clock is never set back, and Ctrl-C reaches all concurrent work."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from datetime import UTC, datetime, timedelta
from types import CodeType, FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Launch, Provenance
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.drive import drive
from mlcd.core.errors import Interrupted
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Settled, Started, Status
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Look, Probe, Round, Step, Watch

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_S = 300.0
"""Nobody waits so long: it is interrupted."""
SPACE = Space((Choice(Offer("x", 36.0, 4, 16), (1, 2)),))


def press_ctrl_c() -> None:
    """In a thread: once the first thread waits for this one and the others."""
    first = threading.main_thread().ident
    assert first is not None
    until_s = time.monotonic() + LONG_S
    while time.monotonic() < until_s and wait.__code__ not in codes(sys._current_frames()[first]):
        time.sleep(0.001)
    signal.pthread_kill(first, signal.SIGINT)


def codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


@given(jumps=st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e9, 1e9)), max_size=8))
def test_setting_the_system_clock_does_not_change_elapsed_time(jumps: list[tuple[float, float]]) -> None:
    steady_s, day = 5_000.0, NOON
    clock = WallClock(NOON - timedelta(hours=2), lambda: day, lambda: steady_s)
    for passed_s, jump_s in jumps:
        before_s = clock.elapsed_s()
        steady_s += passed_s
        day += timedelta(seconds=passed_s + jump_s)
        assert clock.elapsed_s() - before_s == pytest.approx(passed_s, abs=1e-3)
        assert clock.now() == day
    assert clock.elapsed_s() == pytest.approx(7_200 + sum(passed_s for passed_s, _ in jumps))


def test_a_run_that_seems_to_begin_tomorrow_has_used_no_time() -> None:
    clock = WallClock(NOON + timedelta(days=1), lambda: NOON, lambda: 5_000.0)
    assert clock.elapsed_s() == 0.0


def test_ctrl_c_reaches_all_concurrent_work() -> None:
    clock = WallClock(datetime.now(UTC))

    def work(presses: bool) -> str:
        try:
            if presses:
                press_ctrl_c()
            clock.wait(LONG_S)
        except KeyboardInterrupt:
            clock.wait(0.0)  # tearing down takes time, too, and is not interrupted by what was heard before
            return "heard"
        return "not heard"

    assert clock.run_concurrently([lambda: work(True), lambda: work(False), lambda: work(False)]) == ["heard"] * 3
    assert clock.elapsed_s() < LONG_S


class TwoAtOnce:
    """A strategy that probes both configurations in one round."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        if history.measurements:
            return Finish("both were tried")
        return Round(tuple(Probe(each, "at once") for each in space.configurations))


class Patient:
    """A profiler whose probes take long; during the first, the user presses Ctrl-C."""

    def __init__(self, clock: WallClock) -> None:
        self.clock = clock

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        if launch.ordinal == 0:
            press_ctrl_c()
        self.clock.wait(LONG_S)
        raise AssertionError("it was not interrupted")

    def reclaim(self, label: str) -> float | None:
        raise AssertionError("nothing was left open")


def test_ctrl_c_during_probes_at_once_ends_them_now_and_closes_the_books() -> None:
    clock, ledger = WallClock(datetime.now(UTC)), Ledger(None)
    job = Job("job", 1e6)
    book = ledger.begin(job.name, clock, Started(job, SPACE, "fake", Provenance.LIVE, "test"))
    with pytest.raises(Interrupted, match="Go on with: mlcd resume job-1"):
        drive(TwoAtOnce(), job, SPACE, Patient(clock), book)
    assert (book.account.open, book.account.status) == ((), Status.STOPPED)
    settled = [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, Settled)]
    assert [each.measurement.outcome for each in settled] == [Outcome.INTERRUPTED] * 2
    assert all(0 < each.measurement.usd < Configuration(SPACE.offers[0], 2).usd(LONG_S) for each in settled)
