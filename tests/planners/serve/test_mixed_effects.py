"""The mixed-effects regression recovers the structure of its data, and one broken test does not mislead it."""

import numpy as np

from mlcd.planners.serve.beliefs.mixed_effects import Group, ObservedRows, Weights, learn

GROUPS = (Group("level", 1.0, 1.0), Group("slope", 1.0, 1.0))
OF = np.array([0, 1])


def rows(count, rng):
    return np.column_stack([np.ones(count), rng.uniform(-1.0, 1.0, count)])


def shown(features, values, error=0.0, at=None):
    nowhere = np.full(len(values), -1)
    return ObservedRows(features, values, np.full(len(values), error), nowhere if at is None else at)


def test_it_finds_what_models_share_and_how_far_each_deviates():
    rng = np.random.default_rng(1)
    shared, own, seen = np.array([2.0, -1.0]), np.array([0.5, 0.2]), []
    for _ in range(60):
        features = rows(15, rng)
        weights = shared + own * rng.standard_normal(2)
        seen.append((features, features @ weights + 0.05 * rng.standard_normal(15)))
    learnt = learn(seen, GROUPS, OF, 0.3)
    assert np.allclose(learnt.mean, shared, atol=0.25)
    assert np.allclose(np.sqrt(np.diag(learnt.covariance)), own, rtol=0.35)
    assert 0.03 < np.sqrt(learnt.noise) < 0.07


def test_without_seen_models_the_first_guess_stands():
    learnt = learn([], GROUPS, OF, 0.3)
    assert np.allclose(learnt.mean, 0.0)
    assert np.allclose(learnt.covariance, 2.0 * np.eye(2))


def test_trials_without_noise_give_the_weights_away():
    rng = np.random.default_rng(2)
    features, truth = rows(6, rng), np.array([0.7, -0.3])
    after = Weights(np.zeros(2), np.eye(2), 1e-8).given(shown(features, features @ truth))
    assert np.allclose(after.mean, truth, atol=1e-3)
    assert np.all(np.diag(after.covariance) < 1e-4)


def test_conditioning_is_that_of_a_normal_where_the_error_of_measuring_dominates():
    """Then trust has nothing to weigh, and the textbook's formula is the oracle."""
    rng = np.random.default_rng(3)
    features, values = rows(5, rng), rng.standard_normal(5)
    prior, error = np.array([[1.0, 0.3], [0.3, 0.5]]), 0.4
    after = Weights(np.zeros(2), prior, 1e-9).given(shown(features, values, error))
    precision = np.linalg.inv(prior) + features.T @ features / error
    assert np.allclose(after.covariance, np.linalg.inv(precision), atol=1e-5)
    assert np.allclose(after.mean, np.linalg.solve(precision, features.T @ values / error), atol=1e-5)


def test_one_broken_load_test_does_not_speak_for_its_neighbours():
    rng = np.random.default_rng(4)
    belief, features = Weights(np.zeros(2), np.diag([0.25, 0.04]), 0.05**2), rows(4, rng)
    calm = 0.3 * features[:, 0]
    broken = calm.copy()
    broken[2] -= 4.0
    far = abs((belief.given(shown(features, broken)).mean - belief.given(shown(features, calm)).mean)[0])
    assert far < 0.1


def test_what_was_shown_is_drawn_as_it_was_shown():
    rng = np.random.default_rng(5)
    belief, features = Weights(np.zeros(2), np.eye(2), 0.1**2), rows(8, rng)
    tried = shown(features[[3]], np.array([1.5]), error=0.01**2, at=np.array([3]))
    drawn = belief.given(tried).draw(features, tried, 400, rng)
    assert abs(drawn[:, 3].mean() - 1.5) < 0.01
    assert drawn[:, 3].std() < 0.02
    assert drawn[:, [0, 1, 2, 4]].std(axis=0).min() > 0.05


def test_a_likelier_history_has_a_higher_chance():
    rng = np.random.default_rng(6)
    features = rows(5, rng)
    belief = Weights(np.array([1.0, 0.0]), 0.1 * np.eye(2), 0.1**2)
    near, far = shown(features, features @ np.array([1.1, 0.1])), shown(features, features @ np.array([3.0, 0.1]))
    assert belief.log_chance(near) > belief.log_chance(far)
    assert belief.log_chance(shown(features[:0], np.zeros(0))) == 0.0
