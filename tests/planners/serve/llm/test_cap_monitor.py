"""When caps count as broken: rarely by chance, soon if they are, and never by a single burst."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlcd.planners.serve.llm.cap_monitor import FEWEST, SIGNIFICANCE, CapMonitor, Counts
from mlcd.planners.serve.nouns import Cap, Figure

TTFT, MEDIAN = Cap(Figure.TTFT_P95, 0.5), Cap(Figure.TPOT_P50, 0.03)
WINDOWS = st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), max_size=12)


def seen(cap: Cap, above: int, total: int) -> dict[Figure, Counts]:
    return {cap.figure: Counts(above, total)}


@pytest.mark.parametrize("total", [30, 47, 100, 1_000, 20_000])
@pytest.mark.parametrize(("cap", "allowed"), [(TTFT, 0.05), (MEDIAN, 0.5), (Cap(Figure.P99, 1.0), 0.01)])
def test_a_window_at_the_allowed_share_breaks_a_cap_once_in_a_hundred_at_the_most(
    cap: Cap, allowed: float, total: int
) -> None:
    above = np.arange(total + 1)
    breaks = [Counts(int(k), total).breaks(cap) for k in above]
    assert stats.binom.pmf(above, total, allowed)[breaks].sum() <= SIGNIFICANCE + 1e-12


def test_twice_the_allowed_share_is_seen_within_an_hour() -> None:
    rng, late = np.random.default_rng(0), []
    for _ in range(200):
        held, minutes = CapMonitor((TTFT,)), 0
        while not held.broken and minutes < 60:
            held = held.after(seen(TTFT, int(rng.binomial(300, 0.10)), 300))
            minutes += 1
        late.append(minutes)
    assert np.quantile(late, 0.95) <= 10


def test_exactly_the_allowed_share_raises_no_alarm_for_a_month() -> None:
    rng = np.random.default_rng(1)
    held = CapMonitor((TTFT,))
    for _ in range(30 * 24 * 60):
        held = held.after(seen(TTFT, int(rng.binomial(100, 0.05)), 100))
        assert not held.broken


def test_one_burst_does_not_break_a_cap_for_good() -> None:
    held = CapMonitor((TTFT,)).after(seen(TTFT, 300, 300)).after(seen(TTFT, 200, 300))
    assert not held.broken
    held = held.after(seen(TTFT, 3, 300)).after(seen(TTFT, 300, 300))
    assert not held.broken


def test_three_breaking_windows_in_a_row_break_the_cap_for_good() -> None:
    held = CapMonitor((TTFT, MEDIAN))
    for _ in range(3):
        held = held.after({TTFT.figure: Counts(60, 300), MEDIAN.figure: Counts(150, 300)})
    assert held.broken == (TTFT,)
    assert held.words() == "ttft_p95 <= 500 ms: 180 of 900 requests were above it (5 % allowed)"


def test_a_window_with_few_requests_is_extended() -> None:
    held = CapMonitor((TTFT,))
    for _ in range(29):
        held = held.after(seen(TTFT, 1, 1))
    assert not held.breaking
    assert len(held.after(seen(TTFT, 1, 1)).breaking[TTFT.figure]) == 1


@given(WINDOWS)
def test_no_request_is_counted_twice_or_lost(windows: list[tuple[int, float]]) -> None:
    held, counted = CapMonitor((TTFT,)), Counts()
    for total, share in windows:
        counts = Counts(int(share * total), total)
        counted += counts
        held = held.after({TTFT.figure: counts})
        if counted.total >= FEWEST:
            counted = Counts()
        assert held.partial[TTFT.figure] == counted


@given(WINDOWS)
def test_nothing_is_broken_where_nothing_is_above(windows: list[tuple[int, float]]) -> None:
    held = CapMonitor((TTFT,))
    for total, _ in windows:
        held = held.after(seen(TTFT, 0, total))
    assert not held.broken
