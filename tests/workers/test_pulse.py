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
from mlcd.service.workers.here import Here
from mlcd.service.workers.pace import PACE, Pace
from mlcd.service.workers.pulse import DEADLINE, Pulse, Watch
from mlcd.service.workers.run import _bind_to_deadline

QUICK = replace(PACE, watch_s=0.05, unheard_s=0.5, kill_s=0.2)


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    with closing(open_ledger(home)) as opened:
        yield opened


def hung(crew: Here, ledger: Ledger, run: str, gate, until) -> int:
    """The process that drives a run, which from now on runs no line of code."""
    gate.shut()
    crew.send(run)
    until(gate.is_reached)
    gate.vanish()
    driver = ledger.driver(run)
    assert driver
    os.kill(driver, signal.SIGSTOP)
    return driver


@pytest.mark.parametrize("how", ["stop", "down"])
def test_a_process_that_hangs_is_ended_and_its_run_is_put_away(how, ledger, simulated, gate, until):
    with closing(Here(ledger, at_once=1, pace=QUICK)) as crew:
        run = start(simulated, ledger).name
        hung(crew, ledger, run, gate, until)
        getattr(crew, how)(run)
        until(lambda: crew.alive() == 0)
        assert not ledger.is_driven(run)
        assert ledger.account(run).status is Status.STOPPED
        assert ledger.wished(run) is None
        reasons = [line.entry.because for line in ledger.lines(run) if isinstance(line.entry, Stopped)]
        assert "gave no sign of life" in reasons[-1]


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
    now, pace = Time(), Pace()
    pulse = Pulse(now)
    watch = Watch(pulse, pace, now)
    pulse.hear(line(reserved(lifetime_s)))
    watch.why(wish) if wish == "down" else None
    now.seconds += passed_s
    pulse.beat()
    now.seconds += silent_s
    silent = silent_s > (pace.hung_s if wish is None else pace.unheard_s)
    late = lifetime_s is not None and passed_s + silent_s - lifetime_s > pace.late_s
    stays = wish == "down" and passed_s + silent_s > pace.down_s
    assert (watch.why(wish) is not None) == (silent or late or stays)


def test_a_launch_that_is_settled_binds_nobody_any_more_and_the_earliest_end_counts():
    now = Time()
    pulse = Pulse(now)
    assert pulse.late_s == -math.inf
    pulse.end_within(DEADLINE, 100.0)
    first = reserved(10.0)
    pulse.hear(line(first))
    pulse.hear(line(reserved(20.0, "demo-2")))
    assert pulse.late_s == -10.0
    pulse.hear(line(Voided(first.launch, "never was")))
    assert pulse.late_s == -20.0


def test_a_deadline_binds_the_driver_where_time_is_real(ledger, simulated):
    limited = replace(simulated, goal=replace(simulated.goal, deadline_s=3_600.0))
    run = start(limited, ledger)
    pulse = Pulse()
    _bind_to_deadline(run, pulse)
    assert pulse.late_s == -math.inf, "a simulated hour takes a moment"
    run.book.clock = WallClock(datetime.now(UTC))
    _bind_to_deadline(run, pulse)
    assert -3_600.0 <= pulse.late_s < -3_000.0
