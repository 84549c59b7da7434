"""The policies in situations in which the right action is obvious."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlcd.planners.train.market import (
    CostToGo,
    Greedy,
    Guarded,
    HeldMachines,
    Kind,
    Observations,
    OnDemandOnly,
    Pace,
    State,
    Terms,
    UniformProgress,
    observations_from_table,
)
from mlcd_bench.spot import RecordedConditions, play

TICK_H = 1 / 6
TERMS = Terms(("a", "b", "c"), 48.0, 32.0, 0.2, TICK_H, (3.0, 3.0, 3.2))
STEADY = observations_from_table(TERMS.zones, [[True, False, True]] * 1000, TICK_H)
"""A week in which a and c were always up, and b never."""


def state(
    observations: Observations = STEADY,
    now_h: float = 0.0,
    work_left_h: float = 32.0,
    held: HeldMachines | None = None,
    prices: tuple[float, ...] = (1.0, 0.9, 1.1),
    terms: Terms = TERMS,
) -> State:
    return State(terms, now_h, work_left_h, 0.0, 0.0, held, held.zone if held else None, prices, observations)


def refused(observations: Observations, now_h: float, *zones: str) -> Observations:
    for zone in zones:
        observations = observations.observed(zone, False, now_h)
    return observations


def test_greedy_tries_the_cheapest_zone_first_and_waits_if_all_fail() -> None:
    assert Greedy().decide(state()).zone == "b"
    assert Greedy().decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    assert Greedy().decide(state(refused(STEADY, 0.0, "a", "b", "c"))).kind is Kind.WAIT


def test_uniform_progress_goes_on_demand_only_when_it_is_behind_the_line() -> None:
    none_up = refused(STEADY, 6.0, "a", "b", "c")
    assert UniformProgress().decide(state(none_up, 6.0, 28.1)).kind is Kind.ON_DEMAND
    assert UniformProgress().decide(state(none_up, 6.0, 27.9)).kind is Kind.WAIT


def test_uniform_progress_leaves_on_demand_only_when_two_changeovers_ahead_of_the_line() -> None:
    on_demand = HeldMachines("a", False, 0.0, 0.0)
    line = 32.0 - 6.0 * 32 / 48
    assert UniformProgress().decide(state(STEADY, 6.0, line - 0.2, on_demand)).kind is Kind.HOLD
    assert UniformProgress().decide(state(STEADY, 6.0, line - 0.3, on_demand)).kind is Kind.SPOT


def test_uniform_progress_in_one_zone_tries_no_other() -> None:
    policy = UniformProgress(only_zone="c")
    assert policy.decide(state()).zone == "c"
    assert policy.decide(state(refused(STEADY, 0.0, "c"))).kind is Kind.WAIT


def test_on_demand_only_takes_the_cheapest_zone_and_stays() -> None:
    assert OnDemandOnly().decide(state()).zone == "a"
    assert OnDemandOnly().decide(state(held=HeldMachines("a", False, 0.0, 0.0))).kind is Kind.HOLD


def test_cost_to_go_takes_the_best_available_zone() -> None:
    policy = CostToGo()
    assert policy.decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    tight = replace(TERMS, work_h=46.0)  # no slack to wait for the better one in
    assert policy.decide(state(refused(STEADY, 0.0, "a", "b"), work_left_h=46.0, terms=tight)).zone == "c"


def test_cost_to_go_does_not_try_spot_that_costs_more_than_on_demand() -> None:
    on_demand = HeldMachines("a", False, 0.0, 0.0)
    action = CostToGo().decide(state(held=on_demand, prices=(3.5, 3.5, 3.5)))
    assert action.kind is Kind.HOLD


def test_cost_to_go_leaves_a_machine_when_its_price_jumps_and_another_zone_is_cheap() -> None:
    observations = STEADY.observed("a", True, 1.0)
    held = HeldMachines("a", True, 0.0, 0.0)
    assert CostToGo().decide(state(refused(observations, 1.0, "b"), 1.0, 31.0, held)).kind is Kind.HOLD
    jumped = CostToGo().decide(state(refused(observations, 1.0, "b"), 1.0, 31.0, held, (2.9, 2.9, 0.9)))
    assert (jumped.kind, jumped.zone) == (Kind.SPOT, "c")


def test_cost_to_go_includes_the_fee_of_a_move() -> None:
    held, observations = HeldMachines("a", True, 0.0, 0.0), refused(STEADY.observed("a", True, 1.0), 1.0, "b")
    cheaper = (1.0, 0.9, 0.8)
    assert CostToGo().decide(state(observations, 1.0, 31.0, held, cheaper)).zone == "c"
    fees = tuple(tuple(20.0 * (a != b) for b in range(3)) for a in range(3))
    priced = replace(TERMS, move_usd=fees)
    assert CostToGo().decide(state(observations, 1.0, 31.0, held, cheaper, priced)).kind is Kind.HOLD


def test_cost_to_go_is_a_pure_function_of_the_state() -> None:
    used, up = CostToGo(), np.array([[i // 7 % 2 == 0, i // 5 % 3 == 0, i // 11 % 2 == 0] for i in range(300)])
    prices = np.tile([1.0, 0.9, 1.1], (300, 1))
    first = play(Guarded(used), RecordedConditions(up, prices), TERMS)
    assert play(Guarded(used), RecordedConditions(up, prices), TERMS) == first
    assert play(Guarded(CostToGo()), RecordedConditions(up, prices), TERMS) == first


def test_pace_takes_the_cheapest_zone_and_waits_while_there_is_time() -> None:
    assert Pace().decide(state()).zone == "b"  # it was never up, but a failed launch is free
    assert Pace().decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    none = refused(STEADY, 0.0, "a", "b", "c")
    assert Pace().decide(state(none, work_left_h=32.0)).kind is Kind.WAIT
    assert Pace().decide(state(none, work_left_h=45.0)).kind is Kind.ON_DEMAND


def test_pace_does_not_try_spot_that_costs_more_than_on_demand() -> None:
    assert Pace().decide(state(prices=(3.5, 3.5, 3.5), work_left_h=45.0)).kind is Kind.ON_DEMAND


def test_pace_reserves_slack_for_changeovers_before_it_gives_up_machines() -> None:
    on_demand = HeldMachines("a", False, 0.0, 0.0)
    assert Pace().decide(state(work_left_h=32.0, held=on_demand)).kind is Kind.SPOT
    assert Pace().decide(state(work_left_h=46.0, held=on_demand)).kind is Kind.HOLD


def test_pace_moves_when_a_lower_price_pays_for_it() -> None:
    held = HeldMachines("c", True, 0.0, 0.0)
    assert Pace().decide(state(held=held, prices=(1.0, 1.0, 1.01))).kind is Kind.HOLD
    assert Pace().decide(state(held=held, prices=(1.0, 0.9, 2.9))).kind is Kind.SPOT


def test_pace_includes_the_changeover_to_on_demand_and_does_not_wait_in_vain() -> None:
    assert Pace().decide(state(work_left_h=0.1)).kind is Kind.SPOT  # either takes twelve minutes to start
    assert Pace().decide(state(work_left_h=0.1, prices=(2.9, 3.1, 3.1))).kind is Kind.SPOT
    assert Pace().decide(state(work_left_h=20.0, prices=(3.5, 3.5, 3.5))).kind is Kind.ON_DEMAND
