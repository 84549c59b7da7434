"""The table of costs-to-go: closed forms, monotonicity, hours of the day, and the mean cost of following it."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market import (
    CostToGo,
    Guarded,
    HeldMachines,
    Kind,
    Observations,
    State,
    Terms,
    observations_from_table,
)
from mlcd.planners.train.market.availability import availability
from mlcd.planners.train.market.cost_table import FRESH, SETTLED, CostTable
from mlcd.planners.train.market.hazard_rates import DAY_H, HazardRates, learn_rates
from mlcd_bench.spot import RecordedConditions, play

TICK_H = 1 / 6
TERMS = Terms(("a",), 40.0, 30.0, 0.5, TICK_H, (3.0,))


def rates(loss: float, back: float, zones: int = 1) -> HazardRates:
    same = np.ones((zones, DAY_H))
    return HazardRates(np.full((zones, 6), loss), np.full((zones, 6), back), same, same)


def table(loss: float, back: float, terms: Terms = TERMS) -> CostTable:
    return CostTable(terms, (1.0,), rates(loss, back), Observations(), 0.0, terms.work_h)


def test_a_zone_that_is_never_lost_costs_its_price() -> None:
    steady = table(1e-9, 1e-9)
    for kind in (FRESH, SETTLED):
        assert float(steady.cost(steady.launch[:, kind, 0], 30.0, 10.0)) == pytest.approx(30.5, rel=1e-6)
    assert float(steady.cost(steady.held[:, 0, 0], 12.0, 5.0)) == pytest.approx(12.0, rel=1e-6)


def test_a_zone_that_never_comes_back_leaves_on_demand() -> None:
    gone = table(1.0, 1e-9)
    assert float(gone.cost(gone.waiting, 30.0, 10.0)) == pytest.approx(3.0 * 30.5, rel=1e-6)
    assert float(gone.cost(gone.on_demand, 30.0, 0.0)) == pytest.approx(3.0 * 30, rel=1e-6)


def test_what_the_guard_forbids_has_an_infeasible_cost() -> None:
    made = table(0.5, 0.5)
    assert float(made.cost(made.held[:, 0, 0], 30.0, 0.2)) >= made.infeasible_usd / 2  # no changeover to on-demand fits
    assert float(made.cost(made.launch[:, FRESH, 0], 30.0, 0.7)) >= made.infeasible_usd / 2  # nor one there and back


@given(st.floats(0.05, 2.0), st.floats(0.05, 2.0))
def test_costs_fall_with_slack_and_rise_with_work(loss: float, back: float) -> None:
    made = table(loss, back, Terms(("a",), 12.0, 8.0, 0.5, 0.25, (3.0,)))
    for values in (made.waiting, made.on_demand, made.held[:, 0, 0], made.launch[:, SETTLED, 0]):
        by_slack = [float(made.cost(values, 6.0, slack)) for slack in (1.5, 2.0, 3.0, 4.0)]
        by_work = [float(made.cost(values, work, 3.0)) for work in (2.0, 4.0, 6.0, 8.0)]
        assert by_slack == sorted(by_slack, reverse=True)
        assert by_work == sorted(by_work)


def test_machines_that_have_just_come_back_are_not_taken_in_a_flickering_market() -> None:
    """Most spells end at once, and some last: the job stays on demand until a zone has been up for a while."""
    same = np.ones((1, DAY_H))
    flickers = HazardRates(np.array([[4.0, 2.0, 0.2, 0.05, 0.02, 0.01]]), np.full((1, 6), 0.6), same, same)
    made = CostTable(TERMS, (1.0,), flickers, Observations(), 0.0, TERMS.work_h)
    fresh, settled = (float(made.cost(made.launch[:, kind, 0], 20.0, 2.5)) for kind in (FRESH, SETTLED))
    on_demand = float(made.cost(made.on_demand, 20.0, 2.5))
    assert settled < on_demand < fresh
    assert on_demand < 0.75 * 3.0 * 20.0


def test_hours_of_the_day_with_many_preemptions_are_learned() -> None:
    rows = [[hour % DAY_H not in (14, 15, 16)] for hour in np.arange(0, 7 * DAY_H, 0.25).astype(int)]
    observations = observations_from_table(["a"], rows, 0.25)
    ahead = availability(learn_rates(observations, ["a"]), observations, ["a"], 0.0, DAY_H, 1.0)
    assert ahead.up[0, 15] < 0.9 * ahead.up[0, 8]
    assert ahead.preempted[0, 2, 14] > 2 * ahead.preempted[0, 2, 3]


def test_a_zone_that_is_down_now_is_likely_to_be_down_in_an_hour_and_not_tomorrow() -> None:
    observations = observations_from_table(["a"], [[True]] * 200 + [[False]], 0.5)
    ahead = availability(learn_rates(observations, ["a"]), observations, ["a"], 0.0, 48, 0.5)
    assert ahead.up[0, 0] < ahead.up[0, -1]


def test_a_changeover_is_a_whole_number_of_ticks_or_less_than_one() -> None:
    for changeover_h in (0.0, 0.05, 0.2, 0.5, 1.3):
        made = table(0.5, 0.5, Terms(("a",), 40.0, 30.0, changeover_h, TICK_H, (3.0,)))
        whole = changeover_h / made.tick_h
        assert whole < 1 or whole == pytest.approx(round(whole))


@pytest.mark.night  # some hundred jobs
def test_the_mean_cost_of_following_the_table_is_the_cost_that_it_states() -> None:
    """On a market that fits the table's model: memoryless, with a long history."""
    generator = np.random.default_rng(7)
    step_h, loss, back, terms = 0.25, 0.3, 0.6, Terms(("a",), 24.0, 14.0, 0.25, 0.25, (3.0,))

    def trace(ticks: int) -> list[list[bool]]:
        up, found = True, []
        for _ in range(ticks):
            found.append([up])
            if generator.random() < -np.expm1(-(loss if up else back) * step_h):
                up = not up
        return found

    costs, expected = [], []
    for _ in range(150):
        history = observations_from_table(["a"], trace(2_000), step_h)
        made = CostTable(terms, (1.0,), learn_rates(history, ["a"]), history, 0.0, terms.work_h)
        expected.append(made.waiting_usd(history, ("a",), np.zeros(1), 0.0, terms.work_h, 10.0))
        up = [[False], *trace(95)]  # down at the start, as in the table's state N
        conditions = RecordedConditions(np.array(up), np.ones((96, 1)))
        costs.append(play(Guarded(CostToGo()), conditions, terms, history.observed("a", False, 0.0)).cost_usd)
    assert fmean(costs) == pytest.approx(fmean(expected), rel=0.1)


def test_the_policy_tries_no_zone_that_it_would_not_take() -> None:
    state = State(TERMS, 0.0, 30.0, 0.0, 0.0, None, None, (3.5,), Observations())
    assert CostToGo().decide(state).kind in ("on_demand", "wait")


def test_a_launch_for_little_work_also_costs_its_start() -> None:
    steady = table(1e-9, 1e-9)
    assert float(steady.cost(steady.launch[:, SETTLED, 0], 0.01, 10.0)) == pytest.approx(0.51, rel=0.02)
    assert float(steady.cost(steady.launch_on_demand, 0.01, 10.0)) == pytest.approx(3 * 0.51, rel=0.02)


def test_machines_are_not_given_up_just_before_the_job_ends() -> None:
    """A slightly cheaper zone does not pay for another start."""
    terms = Terms(("a", "b"), 48.0, 24.0, 0.1, 1 / 12, (4.0, 4.0))
    observations = Observations().with_held_machine("a", 0.0, 23.0)
    for left_h in (0.3, 0.1, 0.02):
        state = State(terms, 23.0, left_h, 0.0, 0.0, HeldMachines("a", True, 0.0, 0.0), "a", (1.0, 0.9), observations)
        assert CostToGo().decide(state).kind is Kind.HOLD
