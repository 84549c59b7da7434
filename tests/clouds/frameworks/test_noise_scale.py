"""The noise estimate is right for gradients of a Gaussian process with a known noise scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mlcd_tracker.noise import BLOCKS, LEAST, LONGEST, Noise, NoiseScale

NUMBERS = st.floats(1e-6, 1e6)


def gaussian(
    seed: int, *, noise: float, batch: int, workers: int, steps: int = 400, memory: float = 0.0, scale: float = 1.0
) -> NoiseScale:
    """Steps of a process with |G| = scale and tr = noise scale^2; neighbours share `memory` of their noise."""
    random = np.random.default_rng(seed)
    true = random.standard_normal(30)
    true *= scale / np.linalg.norm(true)
    spectrum = np.exp(-np.arange(30) / 10)
    spread = scale * np.sqrt(noise * spectrum / spectrum.sum() * workers / batch)
    drift = math.sqrt(1 - memory**2) * random.standard_normal((steps, workers, 30))
    for step in range(1, steps if memory else 0):
        drift[step] += memory * drift[step - 1]
    gradients = true + spread * drift
    estimate = NoiseScale()
    for local, mean in zip((gradients**2).sum(2).mean(1), (gradients.mean(1) ** 2).sum(1), strict=True):
        estimate.observe(float(local), float(mean), batch, workers)
    return estimate


def read(estimate: NoiseScale) -> Noise:
    noise = estimate.read()
    assert noise is not None
    return noise


@given(
    seed=st.integers(0, 2**32),
    share=st.floats(-1.5, 1.5),
    batch=st.integers(16, 4096),
    workers=st.integers(2, 8),
    scale=st.floats(-8, 8),
)
def test_the_noise_is_within_five_errors_of_the_truth(seed, share, batch, workers, scale):
    """For noise from a thirtieth of the batch to thirty batches, and gradients of any size."""
    noise = batch * 10**share
    found = read(gaussian(seed, noise=noise, batch=batch, workers=workers, scale=10**scale))
    assert abs(math.log(found.scale / noise)) <= 5 * found.error


@pytest.mark.parametrize("memory", [0.0, 0.8])
@pytest.mark.parametrize("workers", [2, 4])
def test_the_interval_covers_the_truth_as_often_as_it_says(memory: float, workers: int):
    """90 % intervals, over 200 runs: also where what neighbouring steps see goes together."""
    inside = 0
    for seed in range(200):
        found = read(gaussian(seed, noise=100.0, batch=64, workers=workers, steps=600, memory=memory))
        inside += abs(math.log(found.scale / 100)) <= 1.645 * found.error
    assert 0.82 <= inside / 200 <= 0.97


def test_the_error_shrinks_as_steps_come_in():
    errors = [read(gaussian(0, noise=100.0, batch=64, workers=4, steps=steps)).error for steps in (50, 400, 3200)]
    assert errors[2] < errors[1] < errors[0]


@given(
    local=NUMBERS, share=st.floats(0, 1), batch=st.floats(2, 1e6), workers=st.integers(2, 64), factor=st.floats(-6, 6)
)
def test_the_scale_of_the_gradients_does_not_matter(local, share, batch, workers, factor):
    # Where norms are equal but for rounding, or the signal is nothing but rounding, so is what is estimated from them.
    assume(share < 1 - 1e-6 and abs(share * workers - 1) > 1e-6)
    one, other = NoiseScale(), NoiseScale()
    for i in range(5):
        mean = local * share * (1 + i / 10)
        one.observe(local * (1 + i / 10), mean, batch, workers)
        other.observe(local * (1 + i / 10) * 10**factor, mean * 10**factor, batch, workers)
    a, b = read(one), read(other)
    assert a.scale == pytest.approx(b.scale, rel=1e-6, abs=1e-6 * batch)
    assert (a.error, a.gamma) == pytest.approx((b.error, b.gamma), rel=1e-6, abs=1e-6)


@example(norms=[(5e-324, 0.0)] * 2, workers=2)  # s/K is zero
@example(norms=[(1e-323, 0.5)] * 2, workers=2)  # tr/LARGEST is zero, and so is |G|^2
@example(norms=[(1e200, 0.0), (1e199, 1.0)], workers=2)  # a square overflows
@given(st.lists(st.tuples(st.floats(0), st.floats(0, 1)), min_size=2, max_size=200), st.integers(2, 64))
def test_whatever_norms_come_the_answer_is_a_number(norms, workers):
    """Single estimates of |G|^2 fall below zero; the ratio never does."""
    estimate = NoiseScale()
    for local, share in norms:
        estimate.observe(local, local * share, 32, workers)
    found = estimate.read()
    if estimate.count < 2:
        assert found is None
    else:
        assert found is not None
        assert 0 < found.scale < math.inf
        assert 0 <= found.error < math.inf
        assert 0 < found.gamma < math.inf


def test_a_gradient_that_is_lost_in_the_noise_reads_as_much_noise_and_little_knowledge():
    estimate = NoiseScale()
    for _ in range(100):
        estimate.observe(1.0, 0.0, 32, 2)
    found = read(estimate)
    assert found.scale > 1e6
    assert found.error >= 2
    assert not found.stable


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_step_that_overflowed_or_has_no_gradient_is_left_out(bad: float):
    estimate = gaussian(1, noise=50.0, batch=32, workers=2)
    before = estimate.read()
    assert not estimate.observe(bad, bad, 32, 2)
    assert not estimate.observe(1.0, math.nan, 32, 2)
    assert not estimate.observe(1.0, 1.0, 32, 1)
    assert estimate.read() == before


def test_gamma_is_scavengers_divided_by_the_workers():
    """1/K where all workers agree, 1 where they have nothing in common (equation 2, divided by K)."""
    agree, differ = NoiseScale(), NoiseScale()
    for _ in range(4):
        agree.observe(2.0, 2.0, 64, 4)
        differ.observe(2.0, 0.5, 64, 4)
    assert (read(agree).gamma, read(differ).gamma) == (0.25, 1.0)


def test_it_is_stable_once_the_error_is_small_and_the_noise_has_stopped_rising():
    assert read(gaussian(2, noise=20.0, batch=64, workers=4)).stable
    assert not read(gaussian(2, noise=20.0, batch=64, workers=4, steps=LEAST - 1)).stable
    assert not read(gaussian(2, noise=5000.0, batch=64, workers=2, steps=100)).stable  # lost in the noise
    rising = NoiseScale()
    for step in range(400):
        rising.observe(1 + (step + 1) / 40, 1 + (step + 1) / 160, 64, 4)
    assert not read(rising).stable


def test_the_start_is_forgotten():
    """Early noise is another one; twice as many steps later it hardly counts."""
    estimate = NoiseScale()
    for local, mean, steps in ((100.0, 25.0 + 1e-3, 100), (2.0, 1.25, 400)):
        for _ in range(steps):
            estimate.observe(local, mean, 64, 4)
    fresh = NoiseScale()
    for _ in range(3000):
        estimate.observe(2.0, 1.25, 64, 4)
        fresh.observe(2.0, 1.25, 64, 4)
    assert read(estimate).scale == pytest.approx(read(fresh).scale, rel=0.01)


def test_a_run_of_any_length_takes_the_same_memory():
    estimate = NoiseScale()
    for _ in range(10 * BLOCKS * LONGEST):
        estimate.observe(2.0, 1.0, 64, 4)
    assert len(estimate._blocks()) <= BLOCKS
