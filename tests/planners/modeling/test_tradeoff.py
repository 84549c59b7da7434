"""Time against cost: the Pareto front agrees with brute force, and the knee is on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.job import Objective
from mlcd.planners.modeling.tradeoff import choose, first_probes, knee, pareto_mask, verified_choice
from mlcd_bench.scale.scavenger import corner_probes

POINTS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=25)


def columns(points):
    seconds, usd = np.array(points, dtype=float).T
    return seconds, usd


@given(POINTS)
def test_the_pareto_front_agrees_with_brute_force(points):
    beaten = [any(s <= a and c <= b and (s, c) != (a, b) for s, c in points) for a, b in points]
    assert pareto_mask(*columns(points)).tolist() == [not one for one in beaten]


@given(POINTS)
def test_the_knee_is_on_the_pareto_front(points):
    seconds, usd = columns(points)
    assert pareto_mask(seconds, usd)[knee(seconds, usd)]


def test_the_knee_of_a_sharp_corner_is_the_corner():
    seconds = np.array([1.0, 1.1, 1.2, 3.0, 6.0, 9.0])
    usd = np.array([9.0, 5.0, 1.3, 1.2, 1.1, 1.0])
    assert knee(seconds, usd) == 2


def test_the_knee_of_a_hyperbola_is_where_both_scaled_axes_are_lowest():
    seconds = np.linspace(1, 10, 46)
    assert seconds[knee(seconds, 10 / seconds)] == pytest.approx(10**0.5, abs=0.3)


def test_one_point_is_its_own_knee_and_of_two_the_smaller_product_is_taken():
    assert knee(np.array([3.0]), np.array([2.0])) == 0
    assert knee(np.array([1.0, 2.0]), np.array([9.0, 2.0])) == 1
    assert knee(np.array([1.0, 2.0]), np.array([3.0, 2.0])) == 0


def test_a_flat_or_a_straight_curve_still_has_a_choice():
    assert knee(np.array([1.0, 2.0, 3.0]), np.full(3, 5.0)) == 0  # the fastest: nothing is gained by waiting
    assert knee(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) in (0, 1, 2)
    assert knee(np.full(3, 2.0), np.array([3.0, 1.0, 2.0])) == 1


@given(POINTS, st.integers(1, 12), st.integers(1, 12))
def test_a_choice_keeps_both_limits_and_is_best_among_those_that_do(points, deadline_s, budget_usd):
    seconds, usd = columns(points)
    within = (seconds <= deadline_s) & (usd <= budget_usd)
    for objective in Objective:
        chosen = choose(seconds, usd, objective, deadline_s, budget_usd)
        if not within.any():
            assert chosen is None
            continue
        assert chosen is not None
        assert within[chosen]
        if objective is Objective.FASTEST:
            assert seconds[chosen] == seconds[within].min()
        if objective is Objective.CHEAPEST:
            assert usd[chosen] == usd[within].min()


NODES = st.lists(st.tuples(st.integers(1, 16), st.integers(1, 64)), min_size=1, max_size=30, unique=True)


@given(NODES)
def test_first_probes_are_few_different_and_on_the_fewest_and_most_nodes(points):
    nodes, batch = columns(points)
    for probes in (first_probes(nodes, batch), corner_probes(nodes, batch)):
        assert 1 <= len(probes) <= 4
        assert len(set(probes)) == len(probes)
        assert {nodes.min(), nodes.max()} <= set(nodes[probes])


@given(POINTS, st.data())
def test_a_verified_choice_was_measured(points, data):
    seconds, usd = columns(points)
    probed = data.draw(st.lists(st.integers(0, len(points) - 1), min_size=1, unique=True))
    for objective in Objective:
        assert verified_choice(seconds, usd, objective, probed) in probed
