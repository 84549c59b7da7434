"""A driver that hangs is ended from outside, its machines are torn down, and its run is left for its user."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.ledgers import SPACE

from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Ledger, Line, Reserved, Status, Stopped, Voided
from mlcd.core.runs.run import start
from mlcd.service.workers.heartbeat import DEADLINE, HangDetector, Heartbeat
from mlcd.service.workers.limits import TIMING, Timing
from mlcd.service.workers.local_executor import LocalExecutor
from mlcd.service.workers.run import _bind_to_deadline

pytestmark = pytest.mark.live

QUICK = replace(TIMING, watch_s=0.05, unresponsive_s=0.5, kill_s=0.2)


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    with closing(open_ledger(home)) as opened:
        yield opened


def hung(executor: LocalExecutor, ledger: Ledger, run: str, gate, until) -> int:
    """The process that drives a run, which from now on runs no line of code."""
    gate.shut()
    executor.send(run)
    until(gate.is_reached)
    gate.vanish()
    driver = ledger.driver(run)
    assert driver
    os.kill(driver, signal.SIGSTOP)
    return driver


@pytest.mark.parametrize("how", ["stop", "down"])
def test_a_process_that_hangs_is_ended_and_its_run_is_put_away(how, ledger, simulated, gate, until):
    with closing(LocalExecutor(ledger, at_once=1, timing=QUICK)) as executor:
        run = start(simulated, ledger).name
        hung(executor, ledger, run, gate, until)
        getattr(executor, how)(run)
        until(lambda: executor.alive() == 0)
        assert not ledger.is_driven(run)
        assert ledger.account(run).status is Status.STOPPED
        assert ledger.requested_action(run) is None
        reasons = [line.entry.because for line in ledger.lines(run) if isinstance(line.entry, Stopped)]
        assert "gave no heartbeat" in reasons[-1]


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def reserved(lifetime_s: float | None, label: str = "demo-1") -> Reserved:
    order = Launch(label, SPACE.configurations[0], Purpose.PROBE, 1.0, lifetime_s, 0)
    return Reserved(order, "a try", 1.0, lifetime_s or 0.0)


def line(entry) -> Line:
    return Line(1, "demo", datetime.now(UTC), 0.0, entry)


@given(
    st.sampled_from([None, "stop", "down"]),
    st.floats(0, 1e4),
    st.floats(0, 1e4) | st.none(),
    st.floats(0, 1e4),
)
def test_a_driver_is_ended_if_and_only_if_it_is_silent_late_or_does_not_go_down(wish, silent_s, lifetime_s, passed_s):
    now, timing = Time(), Timing()
    heartbeat = Heartbeat(now)
    watch = HangDetector(heartbeat, timing, now)
    heartbeat.on_entry(line(reserved(lifetime_s)))
    watch.reason_to_end(wish) if wish == "down" else None
    now.seconds += passed_s
    heartbeat.beat()
    now.seconds += silent_s
    silent = silent_s > (timing.hung_s if wish is None else timing.unresponsive_s)
    late = lifetime_s is not None and passed_s + silent_s - lifetime_s > timing.late_s
    stays = wish == "down" and passed_s + silent_s > timing.down_s
    assert (watch.reason_to_end(wish) is not None) == (silent or late or stays)


def test_a_launch_that_is_settled_binds_nobody_any_more_and_the_earliest_end_counts():
    now = Time()
    heartbeat = Heartbeat(now)
    assert heartbeat.late_s == -math.inf
    heartbeat.set_deadline(DEADLINE, 100.0)
    first = reserved(10.0)
    heartbeat.on_entry(line(first))
    heartbeat.on_entry(line(reserved(20.0, "demo-2")))
    assert heartbeat.late_s == -10.0
    heartbeat.on_entry(line(Voided(first.launch, "never was")))
    assert heartbeat.late_s == -20.0


def test_a_deadline_binds_the_driver_where_time_is_real(ledger, simulated):
    limited = replace(simulated, goal=replace(simulated.goal, deadline_s=3_600.0))
    run = start(limited, ledger)
    heartbeat = Heartbeat()
    _bind_to_deadline(run, heartbeat)
    assert heartbeat.late_s == -math.inf, "a simulated hour takes a moment"
    run.book.clock = WallClock(datetime.now(UTC))
    _bind_to_deadline(run, heartbeat)
    assert -3_600.0 <= heartbeat.late_s < -3_000.0
