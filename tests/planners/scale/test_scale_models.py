"""The models of elastic training match their closed forms, and state their errors correctly."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.modeling.iteration_time import LAWS, LINEAR, OVERLAP, fit_iteration_time
from mlcd.planners.modeling.performance import (
    Direction,
    NodePrice,
    PerformanceModel,
    interval_factor,
    local_batch,
    read_performance_model,
)
from mlcd_bench.scale.forecast import Forecast
from mlcd_bench.scale.forecast import forecast as forecast_of
from mlcd_bench.scale.gradient_noise import noise_scale, noise_scale_error, normalised_noise
from mlcd_bench.scale.scavenger import fit_linear_steps, fit_noise_epochs
from mlcd_bench.scale.starts import Starts, from_noise

GRID = [(nodes, batch) for nodes in (1, 2, 3, 4, 8, 16) for batch in (32, 64, 128, 256)]
K, B = (np.array(column, float) for column in zip(*GRID, strict=True))


def overlapping(nodes, batch, g=3.0):
    """Step times with a known law: a jump from one node to two, and communication overlapped with computing."""
    computing = 0.02 + 0.001 * batch
    syncing = np.where(nodes < 2, 0.01, 0.15 + 0.005 * (nodes - 2))
    return (computing**g + syncing**g) ** (1 / g)


def additive(nodes, batch):
    return 0.05 + 0.002 * batch + 0.03 * nodes


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_the_derivatives_of_a_law_match_finite_differences(law):
    theta = np.array(law.centre) + 0.1
    _, slopes = law.log_step(theta, K, B / 100)
    for i in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += 1e-5
        behind[i] -= 1e-5
        by_hand = (law.log_step(ahead, K, B / 100)[0] - law.log_step(behind, K, B / 100)[0]) / 2e-5
        assert slopes[:, i] == pytest.approx(by_hand, abs=1e-7)


def test_a_law_is_recovered_from_six_points():
    measured = [0, 3, 4, 12, 17, 23]
    truth = overlapping(K, B)
    fitted = fit_iteration_time(K[measured], B[measured], truth[measured])
    seconds, _ = fitted.predict(K, B)
    assert np.median(np.abs(seconds / truth - 1)) < 0.04


def test_enough_points_decide_between_the_laws():
    assert fit_iteration_time(K, B, additive(K, B)).law == LINEAR.name
    assert fit_iteration_time(K, B, overlapping(K, B)).law == OVERLAP.name
    assert fit_iteration_time(K[:4], B[:4], additive(K, B)[:4]).law == OVERLAP.name  # too few to tell


@pytest.mark.parametrize("points", [1, 2, 3])
def test_few_points_are_enough_to_predict_all(points):
    truth = overlapping(K, B)
    seconds, error = fit_iteration_time(K[:points], B[:points], truth[:points]).predict(K, B)
    assert np.isfinite(seconds).all()
    assert (seconds > 0).all()
    assert (error > 0).all()
    assert error[0] < error[-1]


def test_the_error_is_smallest_at_a_measured_point_and_grows_with_the_distance_from_it():
    fitted = fit_iteration_time(np.array([1.0, 1.0]), np.array([32.0, 256.0]), np.array([0.05, 0.28]))
    _, error = fitted.predict(np.array([1.0, 1.0, 16.0]), np.array([32.0, 90.0, 32.0]))
    assert error[0] < error[1] < error[2]
    assert error[2] > 0.3  # nothing was measured on several nodes


def test_a_measured_point_is_trusted_even_where_no_law_explains_it():
    truth = overlapping(K, B)
    truth[7] *= 1.5
    seconds, _ = fit_iteration_time(K, B, truth).predict(K, B)
    assert seconds[7] == pytest.approx(truth[7], rel=0.1)


def test_scatter_about_the_law_widens_the_errors():
    smooth = overlapping(K, B)
    rough = smooth * np.where(np.arange(len(smooth)) % 2, 1.4, 1 / 1.4)
    errors = [fit_iteration_time(K, B, seconds).predict(K + 0.5, B)[1].mean() for seconds in (smooth, rough)]
    assert errors[1] > 2 * errors[0]


def test_a_point_measured_twice_is_averaged():
    twice = [0, 0, 5]
    seconds, _ = fit_iteration_time(K[twice], B[twice], np.array([0.10, 0.12, 0.2])).predict(K[:1], B[:1])
    assert 0.10 < seconds[0] < 0.12


@given(st.floats(1e-4, 1e4), st.lists(st.integers(0, len(GRID) - 1), min_size=1, max_size=8, unique=True))
def test_predictions_scale_with_the_speed_of_the_cluster(times, measured):
    truth = overlapping(K, B)[measured]
    plain, error = fit_iteration_time(K[measured], B[measured], truth).predict(K, B)
    slower, error_then = fit_iteration_time(K[measured], B[measured], truth * times).predict(K, B)
    assert slower == pytest.approx(plain * times, rel=1e-3)
    assert error_then == pytest.approx(error, rel=1e-2)


def test_a_fit_is_fast_enough_for_a_search():
    took = []
    for _ in range(10):
        started = time.process_time()
        fit_iteration_time(K, B, overlapping(K, B))
        took.append(time.process_time() - started)
    assert min(took) < 0.05


def test_noise_is_averaged_in_the_log_weighted_by_iterations():
    found = noise_scale(np.array([1.0, 1.0]), np.array([10.0, 1000.0]), np.array([3.0, 1.0]), 8)
    assert found == pytest.approx(8 * 10 ** (0.75 * 1 + 0.25 * 3))


@pytest.mark.parametrize("sqr", [0.0, -3.0, 1e-300])
def test_one_squared_gradient_near_zero_does_not_dominate_the_noise_of_a_run(sqr):
    found = noise_scale(np.append(np.ones(99), sqr), np.full(100, 5.0), np.ones(100), 1)
    assert found == pytest.approx(5.0, rel=0.05)


def test_a_run_without_finite_noise_has_no_noise_scale():
    assert np.isnan(noise_scale(np.array([np.nan]), np.array([1.0]), np.array([1.0]), 1))


def test_normalised_noise_runs_from_one_over_the_workers_to_one():
    gamma = normalised_noise(np.array([0.0, 100.0, 1e9]), np.array(4.0), np.array(100.0))
    assert gamma == pytest.approx([0.25, 0.625, 1.0], abs=1e-6)


def test_critical_batch_doubles_the_epochs_of_the_smallest_batch_at_the_noise_scale():
    model = from_noise(1e-9, 10.0, 512.0)
    epochs, _ = model.predict(np.array([512.0, 1536.0]))
    assert epochs == pytest.approx([20.0, 40.0])


def test_two_short_starts_decide_whether_epochs_rise_or_fall_with_the_batch():
    rising = from_noise(100, 10.0, 500.0, starts=Starts((10.0, 1000.0), (1.0, 2.0)))
    falling = from_noise(100, 10.0, 500.0, starts=Starts((10.0, 1000.0), (2.0, 1.0)))
    assert (rising.direction, falling.direction) == (Direction.RISING, Direction.FALLING)
    assert "rise" in rising.evidence
    assert "fall" in falling.evidence
    ends, _ = falling.predict(np.array([10.0, 100.0, 1000.0]))
    assert ends[0] / ends[2] == pytest.approx(2.0)
    assert ends[1] == pytest.approx(10.0)


@given(st.floats(1, 1e5), st.floats(1, 1e5), st.floats(1e-3, 1e3), st.booleans())
def test_epochs_are_positive_and_the_reference_is_the_best_known(reference, batch, ratio, falls):
    early = (max(ratio, 1.2), 1.0) if falls else (1.0, max(ratio, 1.2))
    model = from_noise(reference, 7.0, 300.0, starts=Starts((1.0, 1e5), early))
    epochs, error = model.predict(np.array([reference, batch]))
    assert (epochs > 0).all()
    assert epochs[0] == pytest.approx(7.0)
    assert error[0] <= error[1] + 1e-12


def test_a_run_with_two_looks_has_a_larger_error_than_one_with_a_hundred():
    errors = [from_noise(64, 1.0, 1e3, looks=looks).predict(np.array([64.0]))[1][0] for looks in (2, 100)]
    assert errors[0] > 4 * errors[1]


def interval(epochs, batch):
    """The 90 % interval of the epochs with a batch, if step times are exact."""
    middle, error = epochs.predict(np.array([float(batch)]))
    factor = interval_factor(np.zeros(1), error)
    return middle[0] / factor[0], middle[0] * factor[0]


@given(st.integers(2, 200), st.sampled_from([-1, 1]), st.floats(10, 1e6))
def test_a_run_that_reaches_its_target_one_look_earlier_or_later_is_within_the_interval(looks, off, scale):
    low, high = interval(from_noise(64, float(looks), scale, looks=looks), 64)
    assert low <= looks + off <= high


def test_a_flat_curve_has_a_larger_error():
    steep, flat = (from_noise(64, 10.0, 1e3, looks=100, flatness=f).predict(np.array([64.0]))[1] for f in (0.0, 0.2))
    assert flat[0] >= 0.2 > steep[0]


@given(st.floats(1, 1e6), st.booleans())
def test_the_error_grows_with_the_distance_from_the_batch_that_was_run(scale, falls):
    early = (1.5, 1.0) if falls else (1.0, 1.5)
    model = from_noise(256, 10.0, scale, starts=Starts((16.0, 4096.0), early))
    for side in (256 / 2.0 ** np.arange(5), 256 * 2.0 ** np.arange(5)):
        assert (np.diff(model.predict(side)[1]) > 0).all()


def test_growing_noise_that_was_read_at_few_looks_has_a_larger_error():
    few, many = (np.geomspace(1.0, 20.0, looks) for looks in (3, 100))
    errors = [noise_scale_error(np.ones_like(var), var, np.ones_like(var)) for var in (few, many)]
    assert errors[0] > 4 * errors[1]
    one = from_noise(64, 10.0, 500.0, noise_error=errors[0]).predict(np.array([64.0, 512.0]))[1]
    other = from_noise(64, 10.0, 500.0, noise_error=errors[1]).predict(np.array([64.0, 512.0]))[1]
    assert one[0] == other[0]
    assert one[1] > other[1]


def test_noise_that_was_read_once_has_a_large_error():
    assert noise_scale_error(np.ones(1), np.full(1, 5.0), np.ones(1)) >= 0.5


def test_a_difference_within_the_error_of_looks_does_not_make_epochs_fall():
    ends, early = (10.0, 1000.0), (1.5, 1.0)
    clear, unclear = (from_noise(100, 10.0, 500.0, starts=Starts(ends, early, error=error)) for error in (0.0, 0.5))
    assert (clear.direction, unclear.direction) == (Direction.FALLING, Direction.RISING)


def test_scavengers_own_models_are_linear():
    steps = fit_linear_steps(K, B, additive(K, B))
    assert (steps.constant_s, steps.per_sample_s, steps.per_node_s) == pytest.approx((0.05, 0.002, 0.03))
    epochs = fit_noise_epochs(np.array([100.0, 400.0]), np.array([0.6, 0.4]), 100.0, 30.0)
    assert epochs.predict(np.array([100.0, 400.0]))[0] == pytest.approx([30.0, 20.0])


def model(price: NodePrice, epochs: float | None = 10.0) -> PerformanceModel:
    steps = fit_iteration_time(K, B, overlapping(K, B))
    return PerformanceModel(steps, from_noise(256, epochs, 1e12), 10_000, 4, price)


def predicted(by: PerformanceModel, nodes, batch) -> Forecast:
    return forecast_of(by.steps, by.epochs, by.dataset_samples, by.devices_per_node, by.price, nodes, batch)


def test_time_is_epochs_x_iterations_x_step_and_cost_is_time_x_nodes_x_price():
    nodes, batch = np.array([1.0, 2.0]), np.array([256.0, 512.0])
    forecast = predicted(model(NodePrice(3.0)), nodes, batch)
    seconds = 10 * 10_000 / batch * overlapping(nodes, np.array([64.0, 64.0]))
    assert forecast.seconds == pytest.approx(seconds, rel=0.05)
    assert forecast.usd == pytest.approx(forecast.seconds / 3600 * nodes * 3.0)
    assert (forecast.factor > 1).all()


def test_without_known_epochs_only_a_ranking_is_predicted():
    nodes, batch = np.array([1.0, 2.0, 4.0]), np.full(3, 512.0)
    known, relative = (predicted(model(NodePrice(1.0), epochs), nodes, batch) for epochs in (10.0, None))
    assert known.absolute
    assert not relative.absolute
    assert (np.argsort(known.seconds) == np.argsort(relative.seconds)).all()


def test_the_local_batch_is_that_of_the_fullest_device():
    assert local_batch(np.array([3.0, 1.0]), np.array([512.0, 512.0]), 4).tolist() == [43.0, 128.0]


def test_a_stored_model_is_equal_after_it_is_read_again():
    stored = model(NodePrice(2.0))
    again = read_performance_model(json.loads(json.dumps(stored.document(), allow_nan=False)))
    assert again == stored


def test_a_stored_model_without_the_newer_field_power_can_be_read():
    stored = model(NodePrice(2.0))
    document = stored.document()
    document["epochs"] = {k: v for k, v in document["epochs"].items() if k not in ("power", "power_error", "together")}
    assert read_performance_model(document) == stored
