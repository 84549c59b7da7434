from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlcd.planners.modeling.speed_surface import Belief, Evidence, Laws, believe, draw_laws
from mlcd.testing.clouds import small_recording

NODES = np.arange(1, 13)
CLOUD = small_recording([[10.0] * 12, [10.0] * 12, [10.0] * 12], [1.0, 2.0, 4.0])
SPACE = CLOUD.space


def rows(at) -> np.ndarray:
    return np.array(at, dtype=np.intp)


def belief(measured, y, failed=(), out_of_memory=(), error=0.02) -> Belief:
    error = np.full(len(measured), error)
    seen = Evidence(rows(measured), np.asarray(y), error, rows(out_of_memory), rows(failed))
    laws = draw_laws(SPACE, 0)
    return believe(SPACE, laws, np.zeros(len(laws.scale)), seen, 0)


def log_speed(laws: Laws) -> np.ndarray:
    return laws.log_speed(np.arange(len(laws.scale)), np.arange(len(SPACE)))


def test_the_prior_covers_curves_that_rise_fall_and_stay_flat():
    first = log_speed(draw_laws(SPACE, 0))[:, :12]
    rising = (first[:, -1] > first[:, 0] + 0.5).mean()
    falling = (first[:, -1] < first[:, 0] - 0.1).mean()
    assert 0.1 < rising < 0.95
    assert falling > 0.02


def test_surfaces_go_through_what_was_measured_within_its_error():
    y = np.log([20.0, 70.0, 30.0])
    surfaces = belief([0, 11, 14], y).log_speed[:, [0, 11, 14]]
    assert surfaces.mean(axis=0) == pytest.approx(y, abs=0.03)
    assert (surfaces.std(axis=0) < 0.05).all()


def test_predictions_near_a_measurement_are_more_certain():
    spread = belief([0, 5], np.log([20.0, 70.0])).log_speed.std(axis=0)
    assert spread[4] < spread[30]


def test_it_predicts_a_curve_of_the_law_from_three_points():
    truth = np.log(10 / (0.05 + 0.95 / NODES))
    seen = [0, 3, 11]
    found = belief(seen, truth[seen]).log_speed[:, :12]
    assert np.abs(found.mean(axis=0) - truth).max() < 0.12


def test_running_out_of_memory_makes_smaller_sizes_unlikely_and_success_likely():
    after = belief([11], np.log([20.0]), out_of_memory=[2]).fits.mean(axis=0)
    before = belief([], []).fits.mean(axis=0)
    assert after[0] == 0
    assert before[0] > 0.3
    assert after[11] > 0.9


def test_observed_outcomes_are_certain_and_others_never_are():
    ran, failed = [4], [0, 1, 2, 3, 11, 23, 35]
    fits = belief(ran, np.log([20.0]), failed=failed).fits
    assert fits[:, ran].all()
    assert not fits[:, failed].any()
    untried = [i for i in range(len(SPACE)) if i not in ran + failed]
    assert fits[:, untried].mean(axis=0).min() > 0


def test_failures_that_memory_cannot_explain_lower_the_trust_in_memory():
    """Small sizes run and larger ones fail: then no smaller size is sure to fail any more."""
    by_size = belief([11, 23], np.log([20.0, 20.0]), failed=[2, 14]).fits[:, 0].mean()
    the_other_way = belief([2, 14], np.log([20.0, 20.0]), failed=[11, 23, 5]).fits[:, 0].mean()
    assert by_size < 0.2 < the_other_way


def test_the_same_seed_gives_the_same_surfaces_and_another_does_not():
    one = log_speed(draw_laws(SPACE, 1))
    draw_laws.cache_clear()
    assert np.array_equal(one, log_speed(draw_laws(SPACE, 1)))
    assert not np.array_equal(one, log_speed(draw_laws(SPACE, 2)))


def test_the_posterior_of_the_residual_agrees_with_the_textbook_formula():
    """With a single law, mean and spread of the samples are those of Gaussian conditioning."""
    from mlcd.planners.modeling.speed_surface import ALONE_SPREAD, SCALES, _residuals

    nothing = np.zeros((1, 1))
    flat = Laws(
        *[nothing] * 6,
        nothing + 1,
        nothing,
        nothing,
        np.full(1, 0.9),
        np.array([1]),
        replace(draw_laws(SPACE, 0).memory, state=nothing, batch=nothing),
        nothing > 0,
        draw_laws(SPACE, 0).specifications,
    )
    flat = replace(flat, kappa=nothing + 1, beta=nothing, alpha=nothing)
    at, y, error = np.array([0, 20]), np.array([0.4, -0.3]), np.array([0.05, 0.05])
    law = flat.log_speed(np.array([0]), np.arange(len(SPACE)))[0]
    seen = Evidence(at, y + law[at], error, rows([]), rows([]))
    found = believe(SPACE, flat, np.zeros(1), seen, 0, surfaces=4_000).log_speed - law
    process, scale, every = _residuals(SPACE), SCALES[1], np.arange(len(SPACE))
    inside = process.covariance(at, at, scale) + np.diag(error**2 + (scale * ALONE_SPREAD) ** 2)
    cross = process.covariance(every, at, scale)
    cross[at, [0, 1]] += (scale * ALONE_SPREAD) ** 2
    mean = cross @ np.linalg.solve(inside, y)
    variance = np.diag(process.covariance(every, every, scale)) + (scale * ALONE_SPREAD) ** 2
    variance = variance - np.einsum("ij,ij->i", cross, np.linalg.solve(inside, cross.T).T)
    assert found.mean(axis=0) == pytest.approx(mean, abs=0.05)
    assert found.var(axis=0) == pytest.approx(variance, rel=0.15)
