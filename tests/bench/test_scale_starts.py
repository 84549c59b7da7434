"""Epochs over the batch: what noise alone says of them, and what two short starts add."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.modeling import performance
from mlcd.planners.modeling.performance import log_epochs, slopes
from mlcd_bench.scale.starts import Starts, as_read, from_noise, with_starts

ENDS = (16.0, 4096.0)
BATCHES = 16 * 2.0 ** np.arange(9)


def times(noise_scale: float, power: float = 1.0, ends: tuple[float, float] = ENDS) -> float:
    """Samples at the larger batch over those at the smaller one."""
    return float(np.exp(np.diff(log_epochs(np.array(ends), noise_scale, power))[0]))


def starts(ratio: float, read: float, error: float = 0.0, on_the_way: float = 0.0) -> Starts:
    return Starts(ENDS, (1.0, ratio), (1.0, 1.0), error, read, on_the_way)


@given(st.floats(1, 1e4), st.none() | st.floats(0.1, 1e3), st.floats(1, 1e6))
def test_without_starts_the_study_says_what_a_search_says(batch, epochs, scale):
    assert from_noise(batch, epochs, scale) == performance.from_noise(batch, epochs, scale)


@given(st.floats(1, 1e5), st.floats(0.5, 2.0))
def test_the_slopes_of_the_law_are_its_slopes(scale, power):
    by_noise, by_power = slopes(BATCHES, scale, power)
    up, down = np.exp(1e-5), np.exp(-1e-5)
    noise = (log_epochs(BATCHES, scale * up, power) - log_epochs(BATCHES, scale * down, power)) / 2e-5
    bend = (log_epochs(BATCHES, scale, power * up) - log_epochs(BATCHES, scale, power * down)) / 2e-5
    assert by_noise == pytest.approx(noise, abs=1e-6)
    assert by_power == pytest.approx(bend, abs=1e-6)


def test_batches_far_below_the_noise_scale_all_need_the_same_whatever_the_law():
    """At any number of doublings."""
    model = from_noise(16, 10.0, 1e7)
    _, error = model.predict(np.array([16.0, 512.0]))
    assert error[1] == pytest.approx(error[0], rel=1e-3)


@pytest.mark.parametrize("power", [0.7, 1.3])
def test_two_starts_tell_of_a_law_with_another_power(power):
    truth = np.exp(log_epochs(BATCHES, 500.0, power) - log_epochs(256.0, 500.0, power))
    alone = from_noise(256, 1.0, 500.0)
    told = from_noise(256, 1.0, 500.0, starts=starts(times(500.0, power), 500.0))
    off = [np.abs(np.log(model.predict(BATCHES)[0] / truth)).max() for model in (alone, told)]
    assert off[1] < 0.7 * off[0]
    assert told.predict(BATCHES)[1][-1] < 0.8 * alone.predict(BATCHES)[1][-1]


@given(st.floats(0.2, 5.0), st.floats(50, 5e4))
def test_two_starts_tell_how_far_a_noise_scale_was_misread(times_too_large, truth):
    """Early and late alike; the starts went by the truth."""
    read = truth * times_too_large
    told = with_starts(read, 0.3, starts(times(truth), read))
    assert abs(np.log(told.noise_scale / truth)) <= abs(np.log(read / truth)) + 1e-3


@given(st.floats(1.0, 200.0), st.floats(20, 1e6), st.floats(0.3, 1.5))
def test_what_the_starts_have_shown_is_approached_and_never_passed(ratio, read, noise_error):
    """Where the noise says that batches hardly matter, its slope there is no guide to how far it is off."""
    told = with_starts(read, noise_error, starts(ratio, read, on_the_way=1.0))
    before, after = np.log(times(read)), np.log(times(told.noise_scale, told.power))
    assert min(before, np.log(ratio)) - 1e-3 <= after <= max(before, np.log(ratio)) + 1e-3


def test_starts_with_indistinguishable_evaluations_say_nothing_about_the_noise():
    sharp, blurred = (with_starts(500.0, 0.3, starts(5.0, 500.0, error)) for error in (0.02, 5.0))
    assert sharp.noise_scale > 530
    assert sharp.noise_scale > blurred.noise_scale == pytest.approx(500, rel=0.02)


def test_more_contradiction_of_starts_and_noise_gives_a_larger_error():
    found = [with_starts(500.0, 0.3, starts(times(500.0 * off), 500.0)) for off in (1.0, 3.0, 9.0)]
    errors = [(one.noise_error, one.power_error) for one in found]
    assert errors[0] < errors[1] < errors[2]


def test_starts_that_agree_with_the_noise_reduce_its_error():
    alone, told = as_read(500.0, 0.6), with_starts(500.0, 0.6, starts(times(500.0), 500.0))
    assert told.noise_scale == pytest.approx(500.0, rel=0.01)
    assert told.noise_error < alone.noise_error
    assert told.power_error < alone.power_error


def test_starts_that_reached_the_target_say_more_than_early_ones():
    early, late = (with_starts(500.0, 0.3, starts(times(1500.0), 500.0, on_the_way=way)) for way in (0.1, 1.0))
    assert late.noise_scale > early.noise_scale > 500


@pytest.mark.parametrize(("sooner", "off"), [((4.0, 1.0), 1.5), ((1.0, 4.0), 1 / 1.5)])
def test_a_level_passed_before_the_first_evaluation_contradicts_no_possible_value(sooner, off):
    """What the noise says would have been seen sooner than at the first look: so it may have been."""
    seen = Starts(ENDS, (1.0, times(500.0) / off), sooner, 0.4, 500.0)
    assert with_starts(500.0, 0.3, seen) == as_read(500.0, 0.3)
    too_soon = Starts(ENDS, (1.0, times(500.0) * off), sooner, 0.4, 500.0)
    told = with_starts(500.0, 0.3, too_soon)
    assert np.sign(np.log(times(told.noise_scale, told.power) / times(500.0))) == np.sign(np.log(off))


def test_without_a_reading_at_the_start_the_noise_is_as_it_was_read():
    assert with_starts(500.0, 0.3, Starts(ENDS, (1.0, 9.0))) == as_read(500.0, 0.3)
