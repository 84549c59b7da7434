"""Loss curves: known shapes are recovered, intervals are calibrated, and one outlier changes little."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.planners.functions.nouns import DELTA
from mlcd.planners.modeling.loss_curve import COVERED, EXPONENTS, FEWEST, NAMES, LossCurve, fit, shapes

Curve = Callable[[float], float]
KNOWN: dict[str, Curve] = {
    "exponential": lambda e: 0.3 + 0.5 * math.exp(-e / 15),
    "inverse linear": lambda e: 0.2 + 1 / (0.08 * e + 1.2),
    "inverse power": lambda e: 0.1 + 1.1 * (e + 3) ** -0.6,
    "logarithmic": lambda e: 2.5 - 0.3 * math.log(e + 2),
    "weibull": lambda e: 0.4 + 1.5 * math.exp(-((e / 12) ** 0.7)),
    "mmf": lambda e: 0.5 + 2.0 / (1 + (e / 8) ** 1.25),
}


def seen(curve: Curve, epochs: int, noise: float = 0.0, seed: int = 0) -> list[float]:
    off = np.random.default_rng(seed).standard_normal(epochs)
    return [curve(e) + noise * off[e - 1] for e in range(1, epochs + 1)]


def fitted(losses: list[float]) -> LossCurve:
    found = fit(losses)
    assert found is not None
    return found


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_shape_is_predicted_within_a_tenth_from_two_thirds_of_it(name: str) -> None:
    curve = KNOWN[name]
    found = fitted(seen(curve, 30)).epochs_to(curve(45))
    assert found.expected == pytest.approx(45, rel=0.1)
    assert found.low <= 45 <= found.high


@pytest.mark.parametrize("name", KNOWN)
def test_the_interval_covers_twice_the_observed_length(name: str) -> None:
    curve = KNOWN[name]
    found = fitted(seen(curve, 30)).epochs_to(curve(60))
    assert found.low <= 60 <= found.high


@pytest.mark.parametrize("name", ["exponential", "weibull", "mmf"])
def test_the_floor_of_a_curve_that_has_flattened_is_found(name: str) -> None:
    curve = KNOWN[name]
    fall = curve(1) - curve(1e9)
    assert fitted(seen(curve, 80)).floor == pytest.approx(curve(1e9), abs=0.1 * fall)


@pytest.mark.parametrize("name", KNOWN)
def test_the_forecast_of_an_exact_curve_is_the_curve(name: str) -> None:
    curve = KNOWN[name]
    found = fitted(seen(curve, 40))
    for epoch in (5, 20, 40):
        expected = np.median(found.a + found.b * found.drawn.at(np.array([epoch]))[:, 0])
        assert expected == pytest.approx(curve(epoch), abs=0.02 * (curve(1) - curve(40)))


def test_the_interval_is_calibrated() -> None:
    held = []
    for curve in KNOWN.values():
        for seed in range(8):
            losses = seen(curve, 120, 0.01 * (curve(1) - curve(60)), seed)
            target = curve(50)
            truth = next(i + 1 for i, loss in enumerate(losses) if loss <= target)
            found = fitted(losses[: truth // 2]).epochs_to(target)
            held.append(found.low <= truth <= found.high)
    assert COVERED - 0.15 <= np.mean(held) <= 1.0


@pytest.mark.parametrize("at", [10, 24, 29, 30])
@pytest.mark.parametrize("size", [0.2, 1.0])
def test_one_spike_moves_the_prediction_by_less_than_delta(at: int, size: float) -> None:
    curve = KNOWN["inverse linear"]
    losses = seen(curve, 30, 0.002)
    before = fitted(losses).epochs_to(curve(50)).expected
    losses[at - 1] += size * (curve(1) - curve(30))
    after = fitted(losses).epochs_to(curve(50)).expected
    assert after == pytest.approx(before, rel=DELTA)


@SLOW
@given(
    st.lists(st.floats(-1, 1), min_size=4, max_size=30),
    st.floats(0, 0.3),
    st.lists(st.floats(-2, 2), min_size=2, max_size=6),
)
def test_a_lower_target_never_comes_earlier_and_no_curve_breaks_it(
    noise: list[float], size: float, targets: list[float]
) -> None:
    found = fitted([1 / (i + 1) + size * off for i, off in enumerate(noise)])
    ends = [found.epochs_to(target) for target in sorted(targets, reverse=True)]
    for one, other in pairwise(ends):
        assert one.expected <= other.expected
        assert one.low <= other.low
        assert one.high <= other.high
    assert all(end.low <= end.expected <= end.high for end in ends)


def test_a_target_already_reached_has_its_epoch() -> None:
    found = fitted([1.0, 0.8, 0.6, 0.7, 0.5])
    assert found.epochs_to(0.6).expected == found.epochs_to(0.6).low == found.epochs_to(0.6).high == 3


def test_a_target_below_the_floor_is_never_reached() -> None:
    found = fitted(seen(KNOWN["exponential"], 80))
    assert math.isinf(found.epochs_to(0.2).expected)


@pytest.mark.parametrize("losses", [[1.0] * 10, [0.5, 0.6, 0.7, 0.8, 0.9], [0.0] * 5])
def test_a_loss_that_does_not_fall_is_not_expected_to(losses: list[float]) -> None:
    found = fitted(losses)
    assert math.isinf(found.epochs_to(min(losses) - 1.0).expected)


def test_too_few_or_non_finite_losses_are_not_fitted() -> None:
    assert fit([1.0, 0.9, 0.8][: FEWEST - 1]) is None
    assert fit([1.0, 0.9, math.nan, 0.8, 0.7]) is None
    assert fit([1.0, 0.9, 0.85, 0.8]) is not None


def test_the_same_losses_give_the_same_answer() -> None:
    losses = seen(KNOWN["mmf"], 20, 0.02)
    assert fitted(losses).epochs_to(0.7) == fitted(losses).epochs_to(0.7)


def test_a_rising_metric_is_fitted_negated_and_its_scale_does_not_matter() -> None:
    losses = seen(KNOWN["weibull"], 30, 0.005)
    plain = fitted(losses).epochs_to(0.6).expected
    assert fitted([1_000 * (loss - 7) for loss in losses]).epochs_to(-6_400).expected == pytest.approx(plain, rel=0.02)


def test_every_shape_falls_and_has_the_same_prior_weight() -> None:
    grid = shapes(50)
    assert (np.diff(grid.at(np.linspace(0.5, 200, 60)), axis=1) <= 0).all()
    each = [float(grid.prior[grid.kind == i].sum()) for i in range(len(NAMES))]
    assert each == pytest.approx([1 / len(EXPONENTS)] * len(EXPONENTS))
