from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.job import Communication
from mlcd.planners.modeling.physics import Model, needed_gb, on_tensor_cores, samples_per_s, step_s
from mlcd.testing.clouds import small_recording
from mlcd_bench.baselines.train.acquisition import expected_improvement
from mlcd_bench.baselines.train.gaussian_process import features, posterior

GPU = Offer("gpu", 3.0, 8, 64, "V100", 1, 15.7, 16, 10)
MODEL = Model(25e6, 12e9, 256)


@pytest.mark.parametrize(("mu", "sigma", "k"), [(0.0, 1.0, 1.0), (2.0, 0.1, 9.0), (1.0, 0.5, 0.2), (0.0, 2.0, 30.0)])
def test_expected_improvement_equals_its_integral(mu, sigma, k):
    def gain(x):
        return (np.exp(x) - k) * stats.norm.pdf(x, mu, sigma)

    expected, _ = integrate.quad(gain, np.log(k), mu + 12 * sigma)
    assert expected_improvement(np.array([mu]), np.array([sigma]), k)[0] == pytest.approx(expected, rel=1e-6)


def test_expected_improvement_of_a_certain_rate_is_its_lead():
    found = expected_improvement(np.log([5.0, 2.0]), np.zeros(2), 3.0)
    assert found == pytest.approx([2.0, 0.0], abs=1e-6)


def test_the_process_goes_through_what_was_measured_and_is_unsure_elsewhere():
    x = np.linspace(0, 1, 5)[:, None]
    y = np.sin(3 * x[:, 0])
    at = np.array([[0.5], [3.0]])
    mean, std = posterior(x, y, np.full(5, 1e-3), at)
    assert mean[0] == pytest.approx(np.sin(1.5), abs=0.01)
    assert std[0] < 0.02 < std[1]


def test_the_process_learns_amdahls_law_from_four_points():
    recording = small_recording([[10 / (0.1 + 0.9 / n) for n in range(1, 17)]], [1.0])
    x = features(recording.space)
    y = np.log([point.samples_per_s for point in recording.points.values()])
    seen = [0, 1, 5, 15]
    mean, _ = posterior(x[seen], y[seen], np.full(4, 0.01), x)
    assert np.abs(mean - y).max() < 0.1


def test_a_single_measurement_gives_a_posterior():
    mean, std = posterior(np.zeros((1, 2)), np.array([1.0]), np.array([0.01]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert mean[0] == pytest.approx(1.0, abs=0.01)
    assert std[1] > 0.3


def test_features_of_a_space_with_one_type_stay_finite():
    assert np.isfinite(features(small_recording([[1.0, 2.0]], [1.0]).space)).all()


def test_a_single_node_computes_at_its_rate_and_communicates_nothing():
    seconds = step_s(MODEL, Communication.ALL_REDUCE, GPU, np.array([1.0]), 0.5)
    assert seconds[0] == pytest.approx(0.004 + 256 * 12e9 / (15.7e12 * 0.5))


@pytest.mark.parametrize("communication", list(Communication))
def test_scaling_out_is_never_better_than_linear_and_ends_somewhere(communication):
    nodes = np.arange(1.0, 101)
    rates = samples_per_s(MODEL, communication, GPU, nodes, 0.4)
    assert (rates <= rates[0] * nodes * (1 + 1e-9)).all()
    assert np.argmax(rates) < 99


def test_a_faster_network_never_hurts():
    nodes = np.arange(1.0, 33)
    slow = samples_per_s(MODEL, Communication.ALL_REDUCE, GPU, nodes, 0.4)
    fast_offer = Offer("fast", 3.0, 8, 64, "V100", 1, 15.7, 16, 100)
    fast = samples_per_s(MODEL, Communication.ALL_REDUCE, fast_offer, nodes, 0.4)
    assert (fast >= slow).all()


def test_memory_falls_with_the_share_of_the_batch_down_to_the_models_own():
    needed = needed_gb(MODEL, GPU, np.array([1.0, 2.0, 256.0, 512.0]))
    assert needed[0] > needed[1] > needed[2] == needed[3]
    assert needed[3] > 16 * 25e6 / 1e9


def test_an_unpublished_network_is_slow_and_not_a_division_by_zero():
    nodes = np.array([1.0, 2.0, 16.0])
    unstated, slow = (
        samples_per_s(MODEL, Communication.ALL_REDUCE, replace(GPU, network_gbps=gbps), nodes, 0.35)
        for gbps in (0.0, 0.01)
    )
    assert (unstated > 0).all()
    assert unstated == pytest.approx(slow)


def test_an_unknown_gpu_is_assumed_to_have_tensor_cores():
    """Regression: beside a V100 of 125 TFLOP/s, an RTX 2080 Ti counted as 13.4, its fp32 rate."""
    rates = {"V100": 15.7, "A100": 19.5, "RTX2080Ti": 13.4, "K80": 4.1}
    offers = [replace(GPU, instance_type=name, accelerator=name, tflops_per_accelerator=r) for name, r in rates.items()]
    cpu = Offer("cpu", 1.0, 8, 64)
    space = Space(tuple(Choice(offer, (1,)) for offer in (*offers, cpu)))
    found = {offer.instance_type: offer.tflops for offer in on_tensor_cores(space).offers}
    assert (found["V100"], found["A100"], found["K80"]) == pytest.approx((125, 312, 4.1))
    assert 13.4 * 125 / 15.7 < found["RTX2080Ti"] < 13.4 * 312 / 19.5
    assert found["cpu"] == cpu.tflops


def test_a_slice_of_a_gpu_has_a_slice_of_its_tensor_cores():
    """Regression: it counted as the whole GPU."""
    part = replace(GPU, instance_type="half", accelerator="A100", tflops_per_accelerator=9.75)
    assert on_tensor_cores(Space((Choice(part, (1,)),))).offers[0].tflops == pytest.approx(156)
