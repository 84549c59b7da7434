"""The noise is measured as often as two percent of the time allow."""

from __future__ import annotations

import random

import pytest

from mlcd_tracker.measurement_schedule import AGREE_S, FIRST, RAREST, MeasurementSchedule


def play(
    step_s: float, cost: float, *, steps: int = 6_000, jitter: float = 0.0, spread: int = 1, after: int = 0
) -> tuple[float, int]:
    """The share of time that measuring takes after its first times, and the longest silence, in steps.

    A measurement's cost is felt equally in its own steps and in so many after them.
    """
    rhythm, dice = MeasurementSchedule(spread), random.Random(0)
    at, measures, measured_at, silence, last = 0, True, 0, 0, 0
    plain_s = spent_s = 0.0
    wait, measures_next = 1, True
    for step in range(steps):
        if step == at:
            silence, last = max(silence, step - last), step
            measures = measures_next
            measured_at = step if measures else measured_at
            wait, measures_next = rhythm.next(step - measured_at)
            at = step + max(wait, 1 if not measures else spread)
        touched = step - measured_at < spread
        felt = step - measured_at < spread + after
        extra_s = step_s * cost / (spread + after) if felt else 0.0
        rhythm.took(step_s * (1 + jitter * dice.random()) + extra_s, measured=touched)
        if step > (spread + 8) * FIRST:
            plain_s, spent_s = plain_s + step_s, spent_s + extra_s
    return spent_s / plain_s, silence


@pytest.mark.parametrize("spread", [1, 2])
@pytest.mark.parametrize("cost", [0.001, 0.01, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("jitter", [0.0, 0.2])
@pytest.mark.parametrize("after", [0, 3])
def test_measuring_takes_less_than_two_percent_of_the_time(cost: float, jitter: float, spread: int, after: int):
    share, _ = play(0.01, cost, jitter=jitter, spread=spread, after=after)
    assert 0 < share < 0.02


def test_what_costs_nothing_is_done_nearly_always():
    assert play(0.01, 0.005)[0] > 0.004


@pytest.mark.parametrize("step_s", [0.001, 0.02, 0.2, 3.0])
def test_the_workers_talk_often_enough_to_leave_soon(step_s: float):
    """Every quarter of a second, or every step if one takes longer."""
    _, silence = play(step_s, 5.0)
    assert silence <= max(1, AGREE_S / step_s)


def test_a_measurement_that_costs_hundreds_of_steps_is_still_taken_now_and_then():
    share, _ = play(1e-5, 1_000.0, steps=10 * RAREST)
    assert share > 0


def test_a_fixed_rhythm_is_kept():
    rhythm = MeasurementSchedule(fixed=3)
    for _ in range(10):
        rhythm.took(1e-3, measured=False)
    assert rhythm.next(0) == (3, True)
    assert rhythm.next(2) == (1, True)
