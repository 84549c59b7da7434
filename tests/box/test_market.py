"""The spot market of a box follows a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlcd_box.cloud.market import Market, Trace, read_trace

TRACE = "tick,us-east-1a,us-east-1b\n0,16,0\n1,,2\n2,0,2\n"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "market.csv"
    path.write_text(TRACE)
    return read_trace(path, tick_s=30.0, notice_s=10.0)


def test_a_zone_has_the_machines_of_its_tick_and_the_last_tick_repeats(trace: Trace) -> None:
    assert [trace.machines("us-east-1b", at_s) for at_s in (0.0, 29.9, 30.0, 1_000.0)] == [0, 0, 2, 2]


def test_an_empty_cell_repeats_the_one_before(trace: Trace) -> None:
    assert trace.machines("us-east-1a", 45.0) == 16


def test_no_machine_is_rented_that_would_get_its_notice_at_once(trace: Trace) -> None:
    assert [trace.rentable("us-east-1a", at_s) for at_s in (45.0, 51.0)] == [16, 0]
    assert trace.rentable("us-east-1b", 21.0) == 0  # they are there from the next tick on


def test_a_zone_that_is_not_in_the_trace_always_has_machines(trace: Trace) -> None:
    assert trace.rentable("us-west-2a", 0.0) > 1_000


def test_a_replay_starts_now_at_its_first_tick_with_other_zone_names(tmp_path: Path) -> None:
    path, market = tmp_path / "market.csv", Market(tmp_path / "market.json")
    path.write_text(TRACE)
    assert market.trace() is None
    market.replay(read_trace(path, 30.0, 10.0, ["us-west-2a"], first=1), now_s=500.0)
    replayed = market.trace()
    assert replayed is not None
    assert dict(replayed.zones) == {"us-west-2a": [16, 0]}
    assert [replayed.machines("us-west-2a", at_s) for at_s in (529.0, 531.0)] == [16, 0]
