"""Learned rates: closed forms of the curves, the prior without data, and what events and time without any teach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market.hazard_rates import (
    AGES_H,
    PREEMPTION_PER_H,
    RETURN_PER_H,
    cumulative_hazard,
    learn_rates,
    mean_remaining_h,
    mean_spell_h,
)
from mlcd.planners.train.market.observations import MAX_GAP_H, Observations, Spell, observations_from_table

CLASSES = len(AGES_H)


@given(st.floats(0.05, 5.0), st.floats(0.0, 30.0))
def test_a_constant_rate_has_the_exponential_distributions_mean_at_every_age(rate: float, age: float) -> None:
    rates = np.full(CLASSES, rate)
    assert mean_spell_h(rates) == pytest.approx(1 / rate)
    assert mean_remaining_h(rates, age) == pytest.approx(1 / rate)
    assert cumulative_hazard(rates, age) == pytest.approx(rate * age)


def test_the_mean_length_is_the_integral_of_the_survival_function() -> None:
    ages = np.linspace(0, 400, 400_001)
    survives = np.exp(-cumulative_hazard(PREEMPTION_PER_H, ages))
    assert mean_spell_h(PREEMPTION_PER_H) == pytest.approx(float(np.trapezoid(survives, ages)), rel=1e-3)
    later = ages >= 3.0
    rest = float(np.trapezoid(survives[later], ages[later])) / float(np.exp(-cumulative_hazard(PREEMPTION_PER_H, 3.0)))
    assert mean_remaining_h(PREEMPTION_PER_H, 3.0) == pytest.approx(rest, rel=1e-3)


def test_without_observations_the_rates_are_the_prior() -> None:
    rates = learn_rates(Observations(), ["a", "b"])
    assert rates.preemption_per_h == pytest.approx(np.tile(PREEMPTION_PER_H, (2, 1)))
    assert rates.return_per_h == pytest.approx(np.tile(RETURN_PER_H, (2, 1)))


def test_preemptions_raise_the_rate_of_their_zone_most_and_of_others_a_little() -> None:
    flickering = [[bool(i // 2 % 2), False] for i in range(200)]
    rates = learn_rates(observations_from_table(["a", "b"], flickering, 0.1), ["a", "b"])
    assert rates.preemption_per_h[0, 0] > rates.preemption_per_h[1, 0] > PREEMPTION_PER_H[0]


def test_a_zone_that_stays_up_gets_a_lower_preemption_rate() -> None:
    rates = learn_rates(observations_from_table(["a", "b"], [[True, False]] * 1000, 0.1), ["a", "b"])
    assert rates.share_up[0] > 0.7
    assert rates.share_up[1] < 0.3


def test_with_enough_history_the_true_rate_is_learned() -> None:
    generator = np.random.default_rng(1)
    step_h, rate, state, rows = 0.05, 2.0, True, []
    for _ in range(100_000):
        rows.append([state])
        if generator.random() < rate * step_h:
            state = not state
    rates = learn_rates(observations_from_table(["a"], rows, step_h), ["a"])
    passed = cumulative_hazard(rates.preemption_per_h[0], 1.0)
    assert passed == pytest.approx(rate, rel=0.2)  # the level is learned, not how the rate falls with age


def test_observations_join_into_spells_and_a_gap_hides_the_start() -> None:
    observations = (
        Observations().observed("a", True, 0.0).observed("a", True, MAX_GAP_H).observed("a", False, 2 * MAX_GAP_H)
    )
    assert observations.spells_of("a") == (
        Spell(True, 0.0, MAX_GAP_H, False),
        Spell(False, 2 * MAX_GAP_H, 2 * MAX_GAP_H, True),
    )
    later = observations.observed("a", False, 5.0)
    assert later.last_spell("a") == Spell(False, 5.0, 5.0, False)
    assert later.is_down_at("a", 5.0)
    assert not later.is_down_at("a", 5.1)
    assert later.until(1.0) == observations
    assert observations.until(0.25).spells_of("a") == (Spell(True, 0.0, 0.25, False),)


def test_a_table_of_history_equals_its_observations_one_by_one() -> None:
    rows = [True, True, False, False, True]
    one_by_one = Observations()
    for i, look in enumerate(rows):
        one_by_one = one_by_one.observed("a", look, (i - len(rows)) * 0.25)
    assert observations_from_table(["a"], [[look] for look in rows], 0.25) == one_by_one
