"""The blockwise mixed model agrees with dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.random_effects import NOISE, TINY, Block, Effects, trust_in

KINDS = ("a", "a", "b", "fixed")
BELIEVED = {"a": 0.1, "b": 0.1, "own": 0.1, "slope": 0.1, NOISE: 0.05}


def seen(seed: int, blocks: int = 3, each: int = 4) -> Effects:
    """Blocks of rows with shared effects, and a level and a slope of their own."""
    rng = np.random.default_rng(seed)
    count = blocks * each
    feature = rng.normal(size=count)
    groups = [np.arange(i * each, (i + 1) * each) for i in range(blocks)]
    own = [Block(at, {"own": np.ones((each, each)), "slope": np.outer(feature[at], feature[at])}) for at in groups]
    shared = rng.normal(size=(count, len(KINDS)))
    extra_variance = 0.1 * (np.arange(count) % 2)
    return Effects(rng.normal(size=count), shared, KINDS, own, {"fixed": 0.3}, BELIEVED, 0.7, extra_variance)


def some_variances(seed: int) -> dict[str, float]:
    drawn = np.random.default_rng(seed).uniform(0.01, 0.5, 5)
    return {"a": drawn[0], "b": drawn[1], "own": drawn[2], "slope": drawn[3], NOISE: drawn[4], "fixed": 0.3}


def whole(effects: Effects, variances: dict[str, float], trust: Floats) -> Floats:
    """The dense covariance of all rows."""
    found = np.diag(variances[NOISE] / trust + effects.extra_variance + TINY)
    found += (effects.shared * [variances[kind] for kind in effects.kinds]) @ effects.shared.T
    for block in effects.blocks:
        found[np.ix_(block.rows, block.rows)] += sum(variances[name] * part for name, part in block.own.items())
    return found


def conditioned(effects: Effects, variances: dict[str, float], rows: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the shared effects given these rows, by the textbook."""
    at = np.asarray(rows, dtype=int)
    prior = np.diag([variances[kind] for kind in effects.kinds])
    gain = (
        prior
        @ effects.shared[at].T
        @ np.linalg.inv(whole(effects, variances, np.ones(len(effects.residuals)))[np.ix_(at, at)])
    )
    return gain @ effects.residuals[at], prior - gain @ effects.shared[at] @ prior


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_the_posterior_agrees_with_dense_matrices(seed: int) -> None:
    effects, variances = seen(seed), some_variances(seed)
    at = effects.posterior(variances, np.ones(12))
    mean, covariance = conditioned(effects, variances, np.arange(12))
    np.testing.assert_allclose(at.mean, mean, atol=1e-8)
    np.testing.assert_allclose(at.covariance, covariance, atol=1e-8)
    inverse = np.linalg.inv(whole(effects, variances, np.ones(12)))
    np.testing.assert_allclose(at.solved, inverse @ effects.residuals, rtol=1e-6, atol=1e-8)
    for i, block in enumerate(effects.blocks):
        np.testing.assert_allclose(at.inverse_of(i), inverse[np.ix_(block.rows, block.rows)], atol=1e-7)


@given(st.integers(0, 10**6), st.sets(st.integers(0, 2), max_size=2))
@settings(max_examples=20)
def test_left_out_blocks_have_no_influence(seed: int, left_out: set[int]) -> None:
    effects, variances = seen(seed), some_variances(seed)
    mean, covariance = effects.posterior(variances, np.ones(12)).without(sorted(left_out))
    others = np.concatenate([block.rows for i, block in enumerate(effects.blocks) if i not in left_out])
    expected, spread = conditioned(effects, variances, others)
    np.testing.assert_allclose(mean, expected, atol=1e-7)
    np.testing.assert_allclose(covariance, spread, atol=1e-7)


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_minimised_function_is_the_negative_log_posterior_and_its_gradient_is_right(seed: int) -> None:
    effects = seen(seed)
    trust = np.random.default_rng(seed).uniform(0.3, 1.2, 12)

    def unlikely(logs: Floats) -> float:
        variances = {**effects.fixed, **dict(zip(effects.names, np.exp(logs), strict=True))}
        seen_at = multivariate_normal(np.zeros(12), whole(effects, variances, trust)).logpdf(effects.residuals)
        away = (logs - np.log([BELIEVED[name] for name in effects.names])) / effects.prior_spread
        return float(-seen_at - 6 * np.log(2 * np.pi) + 0.5 * (away**2).sum())

    logs = np.log(np.random.default_rng(seed + 1).uniform(0.02, 0.5, len(effects.names)))
    value, slope = effects._negative_log_posterior(logs, trust)
    assert value == pytest.approx(unlikely(logs), abs=1e-5)
    np.testing.assert_allclose(slope, approx_fprime(logs, unlikely, 1e-6), rtol=1e-3, atol=1e-3)


def test_an_outlier_of_a_block_has_a_smaller_weight() -> None:
    calm = seen(3, blocks=12, each=6)
    rng = np.random.default_rng(0)
    residuals = rng.normal(scale=0.05, size=72)
    residuals[10] += 2.0
    effects = replace(calm, residuals=residuals, extra_variance=np.zeros(72), shared=0.1 * calm.shared)
    _, trust = effects.learn({}, np.ones(72), (15, 15))
    assert int(np.argmin(trust)) == 10
    assert trust[10] < 0.1 * np.median(trust)


@pytest.mark.parametrize("deviation", [0.1, 1.0])
def test_the_variance_between_blocks_is_estimated(deviation: float) -> None:
    rng = np.random.default_rng(1)
    levels = rng.normal(scale=deviation, size=40)
    noise = rng.normal(scale=0.1, size=160)
    blocks = [Block(np.arange(4 * i, 4 * i + 4), {"own": np.ones((4, 4))}) for i in range(40)]
    effects = Effects(
        np.repeat(levels, 4) + noise, np.ones((160, 1)), ["a"], blocks, {}, BELIEVED, 2.0, np.zeros(160)
    )  # fmt: skip
    variances, _ = effects.learn({}, np.ones(160), (30, 10))
    assert np.sqrt(variances["own"]) == pytest.approx(deviation, rel=0.35)


def test_of_correlated_rows_the_outlier_has_the_smallest_weight() -> None:
    alike = 0.04 * np.ones((4, 4))
    trust = trust_in(np.array([0.1, 0.11, 0.5, 0.09]), alike, 0.01**2)
    assert trust[2] < 0.02
    assert trust[[0, 1, 3]].min() > 0.3
