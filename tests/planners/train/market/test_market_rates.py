"""Learned rates: closed forms of the curves, the prior without data, and what events and time without any teach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market.rates import (
    AGES_H,
    BACK_PER_H,
    LOSS_PER_H,
    cumulated,
    learn,
    mean_length,
    mean_length_after,
)
from mlcd.planners.train.market.seen import JOIN_H, Seen, Spell, from_history

CLASSES = len(AGES_H)


@given(st.floats(0.05, 5.0), st.floats(0.0, 30.0))
def test_a_constant_rate_has_the_exponential_distributions_mean_at_every_age(rate: float, age: float) -> None:
    rates = np.full(CLASSES, rate)
    assert mean_length(rates) == pytest.approx(1 / rate)
    assert mean_length_after(rates, age) == pytest.approx(1 / rate)
    assert cumulated(rates, age) == pytest.approx(rate * age)


def test_the_mean_length_is_the_integral_of_the_survival_function() -> None:
    ages = np.linspace(0, 400, 400_001)
    survives = np.exp(-cumulated(LOSS_PER_H, ages))
    assert mean_length(LOSS_PER_H) == pytest.approx(float(np.trapezoid(survives, ages)), rel=1e-3)
    later = ages >= 3.0
    rest = float(np.trapezoid(survives[later], ages[later])) / float(np.exp(-cumulated(LOSS_PER_H, 3.0)))
    assert mean_length_after(LOSS_PER_H, 3.0) == pytest.approx(rest, rel=1e-3)


def test_without_a_look_the_prior_is_believed() -> None:
    rates = learn(Seen(), ["a", "b"])
    assert rates.loss_per_h == pytest.approx(np.tile(LOSS_PER_H, (2, 1)))
    assert rates.back_per_h == pytest.approx(np.tile(BACK_PER_H, (2, 1)))


def test_losses_raise_the_rate_of_a_zone_most_and_that_of_others_a_little() -> None:
    flickering = [[bool(i // 2 % 2), False] for i in range(200)]
    rates = learn(from_history(["a", "b"], flickering, 0.1), ["a", "b"])
    assert rates.loss_per_h[0, 0] > rates.loss_per_h[1, 0] > LOSS_PER_H[0]


def test_a_zone_that_stays_up_is_believed_to_stay() -> None:
    rates = learn(from_history(["a", "b"], [[True, False]] * 1000, 0.1), ["a", "b"])
    assert rates.share_up[0] > 0.7
    assert rates.share_up[1] < 0.3


def test_with_enough_history_the_rate_is_the_one_that_was_drawn() -> None:
    generator = np.random.default_rng(1)
    step_h, rate, state, looks = 0.05, 2.0, True, []
    for _ in range(100_000):
        looks.append([state])
        if generator.random() < rate * step_h:
            state = not state
    rates = learn(from_history(["a"], looks, step_h), ["a"])
    passed = cumulated(rates.loss_per_h[0], 1.0)
    assert passed == pytest.approx(rate, rel=0.2)  # the level is learned, not how the rate falls with age


def test_looks_are_joined_into_spells_and_gaps_make_beginnings_unknown() -> None:
    seen = Seen().looked("a", True, 0.0).looked("a", True, JOIN_H).looked("a", False, 2 * JOIN_H)
    assert seen.of("a") == (Spell(True, 0.0, JOIN_H, False), Spell(False, 2 * JOIN_H, 2 * JOIN_H, True))
    later = seen.looked("a", False, 5.0)
    assert later.last("a") == Spell(False, 5.0, 5.0, False)
    assert later.is_down_at("a", 5.0)
    assert not later.is_down_at("a", 5.1)
    assert later.until(1.0) == seen
    assert seen.until(0.25).of("a") == (Spell(True, 0.0, 0.25, False),)


def test_history_is_what_looks_one_by_one_would_have_shown() -> None:
    looks = [True, True, False, False, True]
    one_by_one = Seen()
    for i, look in enumerate(looks):
        one_by_one = one_by_one.looked("a", look, (i - len(looks)) * 0.25)
    assert from_history(["a"], [[look] for look in looks], 0.25) == one_by_one
