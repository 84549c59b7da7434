"""The model of the launch spread: what widens a certificate's margin, and what narrows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Configuration, Offer
from mlcd.core.launch_spread import NO_REPEATS, PRIOR, TAUS, Spread, repeat_log_likelihoods
from mlcd.core.measurement import Measurement, Outcome

HERE, THERE = (Configuration(Offer(name, 1.0, 4, 16), 1) for name in ("here", "there"))
errors, confidences = st.floats(0.001, 0.3), st.floats(0.5, 0.9999)
shares = st.lists(st.floats(0.01, 1.0), min_size=len(TAUS), max_size=len(TAUS))
spreads = shares.map(lambda each: Spread(tuple(share / sum(each) for share in each)))


def launched(*rates: float, where: Configuration = HERE, rel_error: float = 0.01) -> list[Measurement]:
    return [Measurement(where, Outcome.OK, 600.0, 1.0, rate, rel_error) for rate in rates]


def learnt(*rates: float) -> Spread:
    return Spread.posterior(repeat_log_likelihoods(launched(*rates)))


@given(spreads, errors, st.integers(1, 6), confidences)
def test_a_margin_has_the_chance_that_was_asked_for(spread, error, launches, confidence):
    margin = spread.margin(error, launches, confidence)
    assert spread.probability(margin, error, launches) == pytest.approx(confidence, abs=1e-4)


@given(spreads, errors, st.integers(1, 6), confidences, confidences)
def test_who_wants_to_be_surer_keeps_more(spread, error, launches, one, other):
    low, high = sorted((one, other))
    assert spread.margin(error, launches, low) <= spread.margin(error, launches, high)


@given(spreads, errors, errors, st.integers(1, 5), confidences)
def test_a_larger_error_keeps_more_and_more_launches_keep_less(spread, one, other, launches, confidence):
    low, high = sorted((one, other))
    assert spread.margin(low, launches, confidence) <= spread.margin(high, launches, confidence)
    assert spread.margin(low, launches + 1, confidence) <= spread.margin(low, launches, confidence)


@given(st.floats(10.0, 1e4), st.integers(2, 8))
def test_launches_that_agree_narrow_the_margin_and_those_that_do_not_widen_it(rate, launches):
    agree = learnt(*[rate] * launches)
    differ = learnt(*(rate * (1.12 if i % 2 else 1.0) for i in range(launches)))
    margins = [spread.margin(0.01, 1, 0.99) for spread in (agree, Spread(), differ)]
    assert margins == sorted(set(margins))


@given(st.lists(st.floats(0.9, 1.1), min_size=2, max_size=6))
def test_the_order_and_the_unit_of_rates_say_nothing(rates):
    said = repeat_log_likelihoods(launched(*rates))
    assert repeat_log_likelihoods(launched(*reversed(rates))) == pytest.approx(said)
    assert repeat_log_likelihoods(launched(*(1e3 * rate for rate in rates))) == pytest.approx(said)


def test_single_and_failed_launches_do_not_change_the_spread():
    failed = Measurement(HERE, Outcome.OUT_OF_MEMORY, 60.0, 1.0)
    once = [*launched(100.0), *launched(50.0, where=THERE), failed, failed]
    assert repeat_log_likelihoods(once) == NO_REPEATS
    assert Spread.posterior(NO_REPEATS).weights == pytest.approx(PRIOR)


@given(st.lists(st.floats(0.5, 2.0), max_size=5), st.lists(st.floats(0.5, 2.0), max_size=5))
def test_repeats_of_two_configurations_add_up(here, there):
    both = repeat_log_likelihoods([*launched(*here), *launched(*there, where=THERE)])
    apart = zip(repeat_log_likelihoods(launched(*here)), repeat_log_likelihoods(launched(*there)), strict=True)
    assert both == pytest.approx([sum(pair) for pair in apart])
