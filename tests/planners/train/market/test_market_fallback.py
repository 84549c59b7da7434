"""The wait for on-demand machines, estimated from observations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market import Observations, estimate_fallback, observations_from_table
from mlcd.planners.train.market.fallback import OBSERVED_PER_WAIT, PRIOR_WEIGHT_H, probability_of_longer_wait

STEP_H = 0.25
ZONES = ("a", "b", "c")
tables = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=4, max_size=200)
shares = st.sampled_from([0.5, 0.9, 0.99])


def stretches(table: list[tuple[bool, bool, bool]]) -> list[float]:
    """Hours in a row in which no zone had machines, by counting."""
    found, hours = [], 0.0
    for row in [*table, (True, True, True)]:
        if any(row):
            found += [hours] if hours else []
            hours = 0.0
        else:
            hours += STEP_H
    return found


@given(tables, shares)
def test_the_wait_is_the_shortest_with_the_requested_confidence_over_all_zones(
    table: list[tuple[bool, bool, bool]], share: float
) -> None:
    table = [*table, (True, True, True)]  # so that all zones could be had lately, and all stretches have an end
    found = estimate_fallback(observations_from_table(ZONES, table, STEP_H), ZONES, confidence=share)
    down, hours = stretches(table), (len(table) - 1) * STEP_H
    assert found.zones == ZONES
    assert found.observed_h == pytest.approx(hours)
    assert found.meets_confidence is (
        probability_of_longer_wait(down, hours, 3, hours / OBSERVED_PER_WAIT) <= 1 - share
    )
    if not found.meets_confidence:
        assert math.isinf(found.wait_h)
        return
    assert probability_of_longer_wait(down, hours, 3, found.wait_h) <= 1 - share + 1e-9
    if found.wait_h > 0:
        assert probability_of_longer_wait(down, hours, 3, 0.999 * found.wait_h) > 1 - share
    assert found.share >= 1 - (1 - share) * (1 + PRIOR_WEIGHT_H / hours) - 1e-9


@given(tables)
def test_more_confidence_needs_a_longer_wait(table: list[tuple[bool, bool, bool]]) -> None:
    observations = observations_from_table(ZONES, table, STEP_H)
    waits = [estimate_fallback(observations, ZONES, confidence=share).wait_h for share in (0.5, 0.9, 0.99)]
    assert waits == sorted(waits)


def test_the_wait_gets_shorter_with_more_hours_without_a_failed_launch() -> None:
    always = [
        observations_from_table(ZONES, [(True, True, True)] * round(24 * days / STEP_H), STEP_H) for days in (3, 5)
    ]
    three, five = (estimate_fallback(observations, ZONES) for observations in always)
    assert three.wait_h > five.wait_h > 0
    assert five.share == 1.0
    assert five.probability == pytest.approx(0.99, abs=1e-4)


def test_two_days_are_not_enough_to_state_a_wait_for_one_zone() -> None:
    always = observations_from_table(("a",), [(True,)] * round(48 / STEP_H), STEP_H)
    assert math.isinf(estimate_fallback(always, ("a",)).wait_h)
    most = estimate_fallback(always, ("a",), max_wait_h=5.0)
    assert (most.wait_h, most.meets_confidence) == (5.0, False)
    assert 0.9 < most.probability < 0.99


def test_a_zone_without_machines_recently_does_not_count() -> None:
    observations = (
        Observations()
        .observed("a", True, -40.0)
        .observed("a", False, -30.0)
        .observed("b", True, -30.0)
        .observed("c", True, -10.0)
    )
    observations = observations.observed("c", False, -1.0)
    assert estimate_fallback(observations, ("a", "b", "c", "d")).zones == ("b", "c")


def test_no_wait_is_stated_if_no_zone_had_machines() -> None:
    assert estimate_fallback(Observations(), ZONES) == estimate_fallback(
        Observations().observed("a", False, -1.0), ZONES
    )
    assert math.isinf(estimate_fallback(Observations(), ZONES).wait_h)


def test_observations_far_apart_say_nothing_about_the_hours_between_them() -> None:
    observations = Observations().observed("a", True, -20.0).observed("a", True, -10.0)
    assert estimate_fallback(observations, ("a",)).observed_h == 0.0
