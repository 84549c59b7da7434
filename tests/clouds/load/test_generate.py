"""Loads are sent when they are due, and the result of every request is reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_loop import latencies_s, loaded

from mlcd.clouds.load.generate import Closed, Open, RequestFailed, generate
from mlcd.core.errors import UserError

STALL_FROM_S, STALL_TO_S, SERVICE_S = 4.0, 4.5, 0.005


@dataclass
class Served:
    """Answers after as long as it is told, as many at once as are asked; counts what is open."""

    takes_s: Callable[[float], float] = lambda now_s: SERVICE_S
    fails: Callable[[float], bool] = lambda now_s: False
    open: int = field(default=0, init=False)
    busy: int = field(default=0, init=False)
    most_busy: int = field(default=0, init=False)

    def connect(self) -> Connection:
        self.open += 1
        return Connection(self)


@dataclass
class Connection:
    server: Served

    async def send(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self.server.busy += 1
        self.server.most_busy = max(self.server.most_busy, self.server.busy)
        try:
            await asyncio.sleep(self.server.takes_s(now_s))
        finally:
            self.server.busy -= 1
        if self.server.fails(now_s):
            raise RequestFailed("HTTP 503: overloaded")

    async def close(self) -> None:
        self.server.open -= 1


def stalling(now_s: float) -> float:
    """Half a second in which nothing is answered."""
    return SERVICE_S + (STALL_TO_S - now_s if STALL_FROM_S <= now_s < STALL_TO_S else 0.0)


def due_before(arrivals: Open, seconds: float) -> list[float]:
    return list(takewhile(lambda due_s: due_s < seconds, arrivals.due_s()))


def test_an_open_loop_counts_every_request_that_was_due_in_a_stall() -> None:
    arrivals = Open(200.0, seed=1)
    seen = latencies_s(loaded(Served(stalling).connect, arrivals, 10.0))
    expected = [stalling(due_s) for due_s in due_before(arrivals, 10.0)]
    assert sorted(seen) == pytest.approx(sorted(expected)[: len(seen)], abs=1e-6)
    assert len(expected) - len(seen) <= 5  # those that were still on their way
    assert np.quantile(seen, 0.99) == pytest.approx(np.quantile(expected, 0.99), abs=0.02)
    assert np.quantile(seen, 0.99) > 0.3


def test_a_closed_loop_would_hide_that_stall() -> None:
    seen = latencies_s(loaded(Served(stalling).connect, Closed(1), 10.0))
    assert np.quantile(seen, 0.99) == pytest.approx(SERVICE_S)
    assert max(seen) > 0.49


def test_a_bound_on_connections_makes_requests_late_but_drops_none_and_still_counts_from_when_they_were_due() -> None:
    arrivals, server = Open(200.0, seed=1, most_outstanding=8), Served(stalling)
    reports = loaded(server.connect, arrivals, 10.0)
    seen, due = latencies_s(reports), due_before(arrivals, 10.0)
    assert server.most_busy == 8
    stalled = [due_s for due_s in due if STALL_FROM_S <= due_s < STALL_TO_S]
    assert reports[-1].late >= len(stalled) - 8
    assert len(due) - len(seen) <= 8
    assert np.quantile(seen, 0.99) >= np.quantile([stalling(due_s) for due_s in due], 0.99)


def test_an_overloaded_server_shows_latencies_that_grow() -> None:
    reports = loaded(Served(lambda now_s: 0.1).connect, Open(100.0, seed=2, most_outstanding=5), 20.0)
    assert reports[-1].answered == pytest.approx(1_000, rel=0.02)  # 5 at once, a tenth of a second each
    medians = [float(np.median(report.window.latencies_s)) for report in reports[2:]]
    assert np.polyfit(range(len(medians)), medians, 1)[0] == pytest.approx(0.25, rel=0.2)  # half of each half second


@given(st.floats(1.0, 500.0), st.integers(0, 2**32))
def test_arrivals_are_poisson_of_the_stated_rate_and_the_same_for_a_seed(rate: float, seed: int) -> None:
    arrivals = Open(rate, seed)
    due = due_before(arrivals, 4_000 / rate)
    assert due == due_before(arrivals, 4_000 / rate)
    gaps = np.diff(due)
    assert len(due) == pytest.approx(4_000, abs=7 * 4_000**0.5)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.15)


@given(st.integers(1, 20), st.floats(0.01, 0.2))
def test_a_closed_loop_keeps_its_concurrency_and_has_the_rate_of_little_s_law(clients: int, takes_s: float) -> None:
    server = Served(lambda now_s: takes_s)
    reports = loaded(server.connect, Closed(clients), 3.0)
    assert server.most_busy == clients
    assert abs(reports[-1].answered - clients * reports[-1].elapsed_s / takes_s) <= clients * (1 + 1e-9)
    assert latencies_s(reports) == pytest.approx([takes_s] * reports[-1].answered)


def test_reports_are_evenly_apart_and_begin_at_the_beginning() -> None:
    reports = loaded(Served().connect, Closed(2), 5.0)
    assert [report.elapsed_s for report in reports] == pytest.approx([0.5 * i for i in range(11)])
    assert (reports[0].answered, reports[0].window.latencies_s) == (0, ())
    assert [r.answered for r in reports] == list(np.cumsum([len(r.window.latencies_s) for r in reports]))


@pytest.mark.parametrize("arrivals", [Closed(3), Open(50.0)], ids=str)
def test_a_failure_is_counted_with_its_reason_and_not_as_an_answer(arrivals: Closed | Open) -> None:
    reports = loaded(Served(fails=lambda now_s: now_s >= 2.0).connect, arrivals, 4.0)
    assert all(report.window.failures == 0 for report in reports if report.elapsed_s < 1.9)
    assert reports[-1].window.failures > 0
    assert reports[-1].window.error == "HTTP 503: overloaded"
    assert reports[-1].answered == len(latencies_s(reports))


def test_clients_of_a_closed_loop_pause_after_a_failure() -> None:
    reports = loaded(Served(lambda now_s: 0.0, lambda now_s: True).connect, Closed(4), 5.0)
    assert sum(report.window.failures for report in reports) == pytest.approx(4 * 50, abs=8)


def test_a_request_that_takes_too_long_is_given_up() -> None:
    server = Served(lambda now_s: 60.0)
    reports = loaded(server.connect, Closed(2), 5.0, timeout_s=1.0)
    assert sum(report.window.failures for report in reports) == 2 * 4
    assert {report.window.error for report in reports} == {"", "no answer within 1 s"}
    assert (server.busy, server.open) == (0, 0)


@pytest.mark.parametrize("arrivals", [Closed(3), Open(300.0)], ids=str)
def test_closing_leaves_no_thread_and_no_connection(arrivals: Closed | Open) -> None:
    server = Served()
    with closing(generate(server.connect, arrivals, every_s=0.02)) as reports:
        for report in reports:
            if report.answered > 20:
                break
    assert (server.open, server.busy) == (0, 0)
    assert "load" not in [thread.name for thread in threading.enumerate()]


def test_errors_of_a_target_reach_the_caller() -> None:
    def wrong() -> Connection:
        raise UserError("no such model")

    for arrivals in (Closed(3), Open(1_000.0)):
        with pytest.raises(UserError, match="no such model"):
            list(generate(wrong, arrivals))
    assert "load" not in [thread.name for thread in threading.enumerate()]
