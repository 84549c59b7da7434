"""Seen models lose all influence once trials contradict them, and keep it while trials agree."""

import numpy as np
import pytest

from mlcd.planners.serve.beliefs.mixed_effects import Group, ObservedRows, belief_mixture, learn

GROUPS = (Group("level", 1.0, 0.5), Group("slope", 1.0, 0.5))
OF = np.array([0, 1])
NOISE = 0.1
PLACES = np.linspace(-1.0, 1.0, 21)
FEATURES = np.column_stack([np.ones_like(PLACES), PLACES])


def seen(slope, noise=0.02, models=6):
    """Models that hardly differ from each other: the level is 0, the slope is told."""
    rng = np.random.default_rng(0)
    return [(FEATURES, slope * PLACES + noise * rng.standard_normal(len(PLACES))) for _ in range(models)]


def shown(values, *at):
    places = np.array(at, dtype=np.intp)
    return ObservedRows(FEATURES[places], values[places], np.full(len(at), 1e-4), places)


def drawn(belief, told):
    return belief.given(told).draw(FEATURES, told, 2_000, np.random.default_rng(1))


def test_seen_models_that_agree_with_the_trials_are_believed():
    truth = 1.0 * PLACES
    draws = drawn(belief_mixture(seen(1.0), GROUPS, OF, NOISE), shown(truth, 4, 16))
    assert np.abs(np.median(draws, axis=0) - truth).max() < 0.1
    assert np.subtract(*np.quantile(draws, [0.9, 0.1], axis=0)).max() < 0.3


@pytest.mark.parametrize("slope", [-1.0, 0.0, 3.0])
def test_a_model_unlike_all_that_were_seen_is_known_by_its_own_trials(slope):
    truth = 2.0 + slope * PLACES
    draws = drawn(belief_mixture(seen(1.0), GROUPS, OF, NOISE), shown(truth, 2, 10, 18))
    assert np.abs(np.median(draws, axis=0) - truth).max() < 0.15


def test_records_that_contradict_themselves_are_doubted_from_the_start():
    """As if every result stood at a place that it was not measured at."""
    wrong, truth = seen(0.0, noise=1.5), 2.0 - PLACES
    told = shown(truth, 2, 10, 18)
    doubted, believed = (
        drawn(belief_mixture(wrong, GROUPS, OF, NOISE), told),
        drawn(learn(wrong, GROUPS, OF, NOISE), told),
    )
    widths = [np.median(np.subtract(*np.quantile(each, [0.9, 0.1], axis=0))) for each in (doubted, believed)]
    assert np.abs(np.median(doubted, axis=0) - truth).max() < 0.15
    assert widths[0] < 0.5 < 2.0 < widths[1]


def test_nothing_is_certain_before_a_trial():
    """However alike the seen models are, one in ten of the samples is far from them."""
    nothing = shown(PLACES)
    draws = drawn(belief_mixture(seen(1.0), GROUPS, OF, NOISE), nothing)
    assert np.mean(np.abs(draws[:, -1] - 1.0) > 0.5) > 0.1
    assert np.abs(np.median(draws, axis=0) - PLACES).max() < 0.1


def test_the_chance_of_a_history_is_that_of_all_beliefs_together():
    belief = belief_mixture(seen(1.0), GROUPS, OF, NOISE)
    near, far = shown(PLACES, 3, 17), shown(5.0 + PLACES, 3, 17)
    assert belief.log_chance(near) > belief.log_chance(far)
    assert belief.log_chance(shown(PLACES)) == pytest.approx(0.0)


def test_another_source_is_known_by_one_trial_where_the_level_is_all_that_differs():
    """Otherwise the slope and bad luck are blamed for much of it."""
    truth, open_ = 3.0 + PLACES, np.array([4.0, 0.0])
    left = [
        float(np.abs(np.median(drawn(belief, shown(truth, 2)), axis=0) - truth).max())
        for belief in (belief_mixture(seen(1.0), GROUPS, OF, NOISE, other_source=each) for each in (open_, None))
    ]
    assert left[0] < 0.6 < 1.2 < left[1]


def test_what_no_seen_model_told_keeps_its_guess():
    flat = [(features * [1.0, 0.0], values) for features, values in seen(0.0)]
    draws = drawn(belief_mixture(flat, GROUPS, OF, NOISE, guess=np.array([0.0, 2.0])), shown(PLACES))
    assert np.median(draws[:, -1]) == pytest.approx(2.0, abs=0.3)
    told = drawn(belief_mixture(seen(0.0), GROUPS, OF, NOISE, guess=np.array([0.0, 2.0])), shown(PLACES))
    assert np.median(told[:, -1]) == pytest.approx(0.0, abs=0.1)
