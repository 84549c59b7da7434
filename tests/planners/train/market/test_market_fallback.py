"""How long on-demand machines have to be waited for, from what was seen of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market import Seen, fallback, from_history
from mlcd.planners.train.market.fallback import PRIOR_H, SEEN_OUT, chance_of_longer

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
def test_the_wait_is_the_shortest_that_is_enough_over_the_zones_together(
    table: list[tuple[bool, bool, bool]], share: float
) -> None:
    table = [*table, (True, True, True)]  # so that all zones could be had lately, and all stretches have an end
    found = fallback(from_history(ZONES, table, STEP_H), ZONES, confidence=share)
    down, hours = stretches(table), (len(table) - 1) * STEP_H
    assert found.zones == ZONES
    assert found.watched_h == pytest.approx(hours)
    assert found.is_stated is (chance_of_longer(down, hours, 3, hours / SEEN_OUT) <= 1 - share)
    if not found.is_stated:
        assert math.isinf(found.wait_h)
        return
    assert chance_of_longer(down, hours, 3, found.wait_h) <= 1 - share + 1e-9
    if found.wait_h > 0:
        assert chance_of_longer(down, hours, 3, 0.999 * found.wait_h) > 1 - share
    assert found.share >= 1 - (1 - share) * (1 + PRIOR_H / hours) - 1e-9


@given(tables)
def test_a_surer_wait_is_longer(table: list[tuple[bool, bool, bool]]) -> None:
    seen = from_history(ZONES, table, STEP_H)
    waits = [fallback(seen, ZONES, confidence=share).wait_h for share in (0.5, 0.9, 0.99)]
    assert waits == sorted(waits)


def test_the_more_is_watched_without_a_refusal_the_shorter_is_the_wait() -> None:
    always = [from_history(ZONES, [(True, True, True)] * round(24 * days / STEP_H), STEP_H) for days in (3, 5)]
    three, five = (fallback(seen, ZONES) for seen in always)
    assert three.wait_h > five.wait_h > 0
    assert five.share == 1.0
    assert five.chance == pytest.approx(0.99, abs=1e-4)


def test_two_days_do_not_say_much_of_one_zone() -> None:
    always = from_history(("a",), [(True,)] * round(48 / STEP_H), STEP_H)
    assert math.isinf(fallback(always, ("a",)).wait_h)
    most = fallback(always, ("a",), most_h=5.0)
    assert (most.wait_h, most.is_stated) == (5.0, False)
    assert 0.9 < most.chance < 0.99


def test_a_zone_that_could_not_be_had_lately_does_not_count() -> None:
    seen = Seen().looked("a", True, -40.0).looked("a", False, -30.0).looked("b", True, -30.0).looked("c", True, -10.0)
    seen = seen.looked("c", False, -1.0)
    assert fallback(seen, ("a", "b", "c", "d")).zones == ("b", "c")


def test_nothing_can_be_said_where_no_zone_could_be_had() -> None:
    assert fallback(Seen(), ZONES) == fallback(Seen().looked("a", False, -1.0), ZONES)
    assert math.isinf(fallback(Seen(), ZONES).wait_h)


def test_looks_far_apart_say_nothing_of_the_hours_between_them() -> None:
    seen = Seen().looked("a", True, -20.0).looked("a", True, -10.0)
    assert fallback(seen, ("a",)).watched_h == 0.0
