"""A function's share of a CPU, tested with fake clocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mlcd.clouds.functions.throttle import SLICE_S, Throttle, share_of, threads_of


@dataclass
class Machine:
    """Time passes when it works or is waited on; a busy one gives a process only a part of each second."""

    busy: float = 1.0
    late: float = 0.0
    now: float = 100.0
    cpu: float = 7.0
    waits: list[float] = field(default_factory=list)

    def burn(self, seconds: float) -> str:
        self.cpu += seconds
        self.now += seconds * self.busy
        return "done"

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds + self.late

    def throttle(self, share: float | None, **more: object) -> Throttle:
        return Throttle(share, lambda: self.cpu, lambda: self.now, self.wait, **more)  # type: ignore[arg-type]


@given(some.floats(0.05, 6.0), some.floats(1e-4, 3.0), some.floats(1.0, 5.0))
def test_work_takes_its_cpu_time_over_the_share_or_longer_on_a_busy_machine(share, work_s, busy):
    machine = Machine(busy)
    assert machine.throttle(share).work(lambda: machine.burn(work_s)) == "done"
    assert machine.now - 100.0 == pytest.approx(max(work_s / share, work_s * busy), abs=1e-9)
    assert all(wait <= SLICE_S for wait in machine.waits)


@given(some.floats(0.05, 1.0), some.lists(some.floats(1e-5, 0.01), min_size=5, max_size=50), some.floats(0.0, 1e-3))
def test_oversleeping_does_not_accumulate(share, works_s, late_s):
    machine = Machine(late=late_s)
    throttle = machine.throttle(share)
    for work_s in works_s:
        throttle.work(lambda work_s=work_s: machine.burn(work_s))
    due_s = sum(works_s) / share
    pieces = max(works_s) / share / SLICE_S + 1
    assert due_s - 1e-9 <= machine.now - 100.0 <= due_s + pieces * late_s + 1e-9


def test_without_a_share_nothing_is_slowed_down():
    machine = Machine()
    machine.throttle(None).work(lambda: machine.burn(2.0))
    assert machine.waits == []


def test_a_wait_can_be_aborted_between_two_sleeps():
    machine = Machine()

    def look() -> None:
        if len(machine.waits) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        machine.throttle(0.1, between=look).work(lambda: machine.burn(1.0))
    assert len(machine.waits) == 3


def test_cpu_shares_are_proportional_to_memory_and_threads_are_whole():
    assert share_of(1_769) == 1.0
    assert share_of(1_769 / 2) == 0.5
    assert [threads_of(memory) for memory in (128, 1_769, 3_500, 3_538, 10_240)] == [1, 1, 1, 2, 5]
