"""Expected costs on spot markets: they decide the choice, and never what a certificate promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.market_folders import on_markets

from mlcd.core.clock import VirtualClock
from mlcd.core.drive import search
from mlcd.core.forecasts import forecasts, objective
from mlcd.core.guarantee import certifiable, certifiable_forecasts
from mlcd.core.job import Goal, Objective
from mlcd.core.ledger import Ledger, Started
from mlcd.core.market import Market, OnSpot, share_on_spot
from mlcd.planners.train.market.expected_cost import expected_on_spot
from mlcd.planners.train.net_value import NetValue
from mlcd.reports.words import decision_words
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording, small_recording

ALWAYS = ((-400 * 3_600.0, -600.0, True),)
NEVER = ((-400 * 3_600.0, -600.0, False),)


def spot(zone: str, usd_per_hour: float, before: tuple[tuple[float, float, bool], ...] = ()) -> Market:
    return Market(zone, True, usd_per_hour, before=before)


def test_a_zone_that_was_always_up_is_expected_up_and_one_that_never_was_is_not():
    good, bad = (expected_on_spot([spot("a", 1.0, before)], 4.0, 0.1) for before in (ALWAYS, NEVER))
    assert good is not None
    assert bad is not None
    assert good.up > 0.9
    assert bad.up < 0.3
    assert good.price == pytest.approx(0.25, rel=0.05)


def test_more_zones_are_up_more_often_and_the_cheapest_comes_first():
    one, two = (
        expected_on_spot([spot("a", 1.0)], 4.0, 0.1),
        expected_on_spot([spot("b", 2.0), spot("a", 1.0)], 4.0, 0.1),
    )
    assert one is not None
    assert two is not None
    assert two.up > one.up
    assert one.price < two.price < 0.5


def test_a_market_that_costs_more_than_on_demand_does_not_count():
    assert expected_on_spot([spot("a", 4.0)], 4.0, 0.1) is None


shares, times_s = st.floats(0, 1), st.floats(1, 1e6)


@given(shares, shares, st.floats(0, 2), times_s, st.floats(1.01, 3), st.none() | times_s)
def test_expected_costs_grow_with_time_and_are_at_most_those_on_demand(up, price, slack, seconds, longer, deadline_s):
    times = np.array([seconds, longer * seconds])
    share = share_on_spot(np.array([up, price, slack, 600.0]), times, 1.2 * times, deadline_s)
    costs = times * (1 - (1 - price) * share)
    assert (costs <= times * (1 + 1e-12)).all()
    assert costs[1] >= costs[0] * (1 - 1e-12)


def test_a_job_without_time_to_spare_is_expected_on_demand_first():
    expected = np.array([1.0, 0.2, 0.05, 600.0])
    shares = [float(share_on_spot(expected, np.array(3_600.0), np.array(4_000.0), d)) for d in (4_000, 5_000, 1e6)]
    assert shares[0] < shares[1] <= shares[2] == 1.0


@given(st.integers(0, 10_000))
def test_the_choice_is_the_cheapest_shown_and_limits_count_on_demand_prices(seed):
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job = job_on(recording, random_goal(rng, recording))
    cloud = bounded_cloud(recording, 0.02, seed)
    space = on_markets(cloud.space, rng)
    assert isinstance(cloud.clock, VirtualClock)
    book = Ledger(None).begin("job", cloud.clock, Started(job, space, "recorded", cloud.provenance, "0"))
    decision = search(NetValue(seed), job, space, cloud.profiler, book)
    history, plain = book.account.history, cloud.space
    of_plain = {m.configuration: each for m, each in forecasts(job, plain, history)}
    for m, each in forecasts(job, space, history):
        assert each.usd <= of_plain[m.configuration].usd * (1 + 1e-12)
        assert (each.worst_usd, each.worst_seconds) == (
            of_plain[m.configuration].worst_usd,
            of_plain[m.configuration].worst_seconds,
        )
    assert [m.configuration for m in certifiable(job, space, history)] == [
        m.configuration for m in certifiable(job, plain, history)
    ]
    if decision.configuration is None:
        return
    assert decision.forecast is not None
    ahead = certifiable_forecasts(job, space, history)
    assert objective(job.goal, decision.forecast) == min(objective(job.goal, each) for each in ahead.values())
    if space.markets(decision.configuration):  # such a run is not moved to other machines
        assert decision.forecast.fallback is None
        assert job.goal.allows(
            history.spent_usd + decision.forecast.worst_usd, history.elapsed_s + decision.forecast.worst_seconds
        )
    assert ("on spot machines" in decision_words(decision, job.goal)) == (decision.forecast.on_spot > 0)


@pytest.mark.parametrize("favoured", [0, 1])
def test_spot_prices_move_the_choice_to_the_type_that_is_cheaper_on_spot(favoured):
    recording = small_recording([[50.0, 90.0], [60.0, 100.0]], [1.0, 1.1])
    job, cloud = job_on(recording, Goal(Objective.CHEAPEST)), bounded_cloud(recording, 0.0, 0)
    offered = list(cloud.space.choices)
    offered[favoured] = replace(offered[favoured], on_spot=(OnSpot(1.0, 0.2),))
    space = replace(cloud.space, choices=tuple(offered))
    book = Ledger(None).begin("job", cloud.clock, Started(job, space, "recorded", cloud.provenance, "0"))
    decision = search(NetValue(0), job, space, cloud.profiler, book)
    assert decision.configuration is not None
    assert decision.configuration.offer == space.offers[favoured]
