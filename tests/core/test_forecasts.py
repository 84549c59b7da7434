"""Forecasts: the worst-case rate of the next launch, and what the rest of the job takes with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.forecasts import certified_rates, forecast, forecasts
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Measurement, Outcome

OFFER = Offer("node", 3.6, 4, 16)
SPACE = Space((Choice(OFFER, tuple(range(1, 9))),), ProbeTime(60.0, 6.0), startup_limit_s=60.0)
ONE, TWO, *REST = SPACE.configurations
JOB = Job("job", 1e6, Goal(deadline_s=1e6))


def probe(where: Configuration = ONE, rate: float = 100.0, rel_error: float = 0.03) -> Measurement:
    return Measurement(where, Outcome.OK, 60.0, 0.1, rate, rel_error)


def slow_rate(*probes: Measurement, confidence: float = 0.99) -> float:
    history = History(probes)
    return certified_rates(confidence, history)(history.good[0])


def test_the_worst_is_the_slow_rate_after_the_longest_start_up():
    history = History((probe(),))
    ahead = forecast(JOB, SPACE, history, history.good[0])
    assert ahead.seconds == pytest.approx(1e6 / 100)
    assert ahead.worst_seconds == pytest.approx(60 + 1e6 / slow_rate(probe()))
    assert ahead.worst_usd == pytest.approx(ahead.worst_seconds * 3.6 / 3_600)


@given(st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_who_wants_to_be_surer_counts_on_less(one, other):
    low, high = sorted((one, other))
    rates = [slow_rate(probe(), confidence=confidence) for confidence in (high, low)]
    assert rates == sorted(rates)
    history = History((probe(),))
    worst = [
        forecast(replace(JOB, goal=Goal(confidence=c)), SPACE, history, probe()).worst_seconds for c in (low, high)
    ]
    assert worst == sorted(worst)


@given(st.integers(0, len(REST)))
def test_the_best_of_many_that_were_launched_once_has_to_be_surer(others):
    alone = slow_rate(probe())
    among_many = slow_rate(probe(), *(probe(where, 50.0) for where in REST[:others]))
    assert among_many < alone if others else among_many == alone


def test_a_repeated_launch_needs_no_correction_for_the_winners_curse():
    among_many = slow_rate(probe(), probe(), *(probe(where, 50.0) for where in REST))
    assert among_many == pytest.approx(slow_rate(probe(), probe()))
    assert among_many > slow_rate(probe())


def test_a_first_launch_that_was_faster_than_those_after_it_is_not_counted_on():
    lucky, unlucky = slow_rate(probe(rate=110.0), probe(rate=100.0)), slow_rate(probe(rate=100.0), probe(rate=110.0))
    assert lucky < unlucky


def test_the_luckiest_of_several_launches_is_not_counted_on():
    assert slow_rate(*map(rated, (100, 101, 99, 120))) == pytest.approx(slow_rate(*map(rated, (120, 100, 101, 99))))
    steady, lucky = slow_rate(*map(rated, (100, 101, 99, 100))), slow_rate(*map(rated, (100, 101, 99, 110)))
    assert lucky <= steady, "one fast launch more makes launches differ, and nothing surer"


def rated(rate: float) -> Measurement:
    return probe(rate=rate)


def test_forecasts_are_of_all_that_has_a_rate_or_of_those_that_are_named():
    history = History((probe(), probe(TWO, 180.0), Measurement(REST[0], Outcome.OUT_OF_MEMORY, 60.0, 0.1)))
    assert [m.configuration for m, _ in forecasts(JOB, SPACE, history)] == [ONE, TWO]
    ((only, ahead),) = forecasts(JOB, SPACE, history, history.good[1:])
    assert only.configuration == TWO
    assert ahead == forecast(JOB, SPACE, history, only)
