"""Residuals: they stay with their deployment, and outliers are trusted less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.serve.llm.residuals import Residuals

THREE = Residuals(np.array([0, 0, 0, 1, 1, 2]), np.log([1.0, 2, 64, 1, 64, 8]))
ROWS = np.arange(6)


def test_samples_have_the_covariance_that_is_stated():
    drawn = THREE.drawn(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), THREE.covariance(ROWS, ROWS), atol=0.03)


def test_residuals_correlate_over_concurrency_and_not_between_deployments():
    at = THREE.covariance(ROWS, ROWS)
    assert at[0, 1] > 0.8 > at[0, 2] > 0
    assert at[0, 3] == at[0, 5] == 0


def test_prior_trusts_have_mean_one_and_are_shared_within_a_deployment():
    trust = THREE.trust_drawn(4_000, np.random.default_rng(0))
    np.testing.assert_allclose(trust.mean(axis=0), 1.0, atol=0.05)
    assert np.array_equal(trust[:, 0], trust[:, 2])
    assert not np.array_equal(trust[:, 0], trust[:, 3])


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.floats(0.001, 1), st.floats(0, 1))
def test_trust_is_positive_and_alike_within_a_deployment(residuals: list[float], noise: float, own: float):
    trust = THREE.trust(np.array(residuals), own * np.ones((6, 6)), noise)
    assert (trust > 0).all()
    assert trust[0] == pytest.approx(trust[1])
    assert trust[3] == pytest.approx(trust[4])


@given(st.floats(0.2, 3), st.floats(0.5, 3))
def test_outlying_deployments_are_trusted_less(far: float, farther: float):
    effects = 0.01 * np.ones((6, 6))
    near, away = (THREE.trust(np.array([0.0, 0, 0, each, each, 0]), effects, 0.01) for each in (far, far + farther))
    assert away[3] < near[3] < near[5]
