"""Intervals of quantiles hold for any distribution of latencies, also for correlated requests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mlcd.planners.serve.measure import ALPHA, Interval, quantile

latencies = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200)


@given(st.lists(latencies, min_size=1, max_size=12), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_between_its_ends_and_is_one_of_the_latencies(windows: list[list[float]], q: float) -> None:
    found = quantile([np.array(window) for window in windows], q)
    assert found.low <= found.at <= found.high
    every = np.concatenate([np.array(window) for window in windows])
    assert found.at == np.quantile(every, q, method="inverted_cdf")
    assert {found.low, found.at, found.high} <= {*every, 0.0, math.inf}


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_the_upper_end_is_the_first_order_statistic_that_is_sure_enough(q: float) -> None:
    n = 5_000
    found = quantile([np.arange(1.0, n + 1)], q)  # the k-th smallest is k
    assert stats.binom.sf(found.high - 1, n, q) <= ALPHA < stats.binom.sf(found.high - 2, n, q)
    assert stats.binom.cdf(found.low - 1, n, q) <= ALPHA < stats.binom.cdf(found.low, n, q)


def test_how_many_requests_a_99th_percentile_needs() -> None:
    needed = math.ceil(math.log(ALPHA) / math.log(0.99))  # all of them below it is that unlikely
    assert quantile([np.arange(needed, dtype=float)], 0.99).high == needed - 1
    assert quantile([np.arange(needed - 1, dtype=float)], 0.99).high == math.inf


def wrong_ends(rng: np.random.Generator, together: int, q: float, repeats: int) -> tuple[int, int]:
    """How often the truth is above the high end and below the low one, where so many requests share a latency."""
    truth, high, low = -math.log(1 - q), 0, 0
    for _ in range(repeats):
        alone = rng.exponential(1.0, (20, 100 // together))
        found = quantile([np.repeat(window, together) for window in alone], q)
        high, low = high + (found.high < truth), low + (found.low > truth)
    return high, low


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_ends_are_hardly_ever_on_the_wrong_side(q: float) -> None:
    high, low = wrong_ends(np.random.default_rng(0), 1, q, 2_000)
    assert high <= 9  # 2.7 expected: more than 9 is one time in 1,000
    assert low <= 9


def test_ends_know_that_requests_of_one_batch_hang_together() -> None:
    high, low = wrong_ends(np.random.default_rng(1), 10, 0.95, 1_000)
    assert high <= 10  # as if each stood alone, it would be 200 of 1,000
    assert low <= 20


def test_a_wider_interval_keeps_its_middle() -> None:
    assert Interval(1.0, 1.0, 1.0).widened(0.1) == Interval(math.exp(-0.3), 1.0, math.exp(0.3))
    assert Interval(0.1, 1.0, 9.0).widened(0.1) == Interval(0.1, 1.0, 9.0)
    assert Interval(0.5, 1.0, 2.0).clear_of(2.0)
    assert Interval(0.5, 1.0, 2.0).clear_of(0.4)
    assert not Interval(0.5, 1.0, 2.0).clear_of(1.9)
