"""What the policies do in situations in which it is clear what is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlcd.planners.train.market import (
    CostToGo,
    Greedy,
    Guarded,
    Held,
    Kind,
    OnDemandOnly,
    Pace,
    Seen,
    State,
    Terms,
    UniformProgress,
    from_history,
)
from mlcd_bench.spot import Recorded, play

TICK_H = 1 / 6
TERMS = Terms(("a", "b", "c"), 48.0, 32.0, 0.2, TICK_H, (3.0, 3.0, 3.2))
STEADY = from_history(TERMS.zones, [[True, False, True]] * 1000, TICK_H)
"""A week in which a and c were always up, and b never."""


def state(
    seen: Seen = STEADY,
    now_h: float = 0.0,
    work_left_h: float = 32.0,
    held: Held | None = None,
    prices: tuple[float, ...] = (1.0, 0.9, 1.1),
    terms: Terms = TERMS,
) -> State:
    return State(terms, now_h, work_left_h, 0.0, 0.0, held, held.zone if held else None, prices, seen)


def refused(seen: Seen, now_h: float, *zones: str) -> Seen:
    for zone in zones:
        seen = seen.looked(zone, False, now_h)
    return seen


def test_greedy_tries_the_cheapest_zone_first_and_waits_when_none_is_left() -> None:
    assert Greedy().decide(state()).zone == "b"
    assert Greedy().decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    assert Greedy().decide(state(refused(STEADY, 0.0, "a", "b", "c"))).kind is Kind.WAIT


def test_uniform_progress_goes_on_demand_only_when_it_is_behind_the_line() -> None:
    none_up = refused(STEADY, 6.0, "a", "b", "c")
    assert UniformProgress().decide(state(none_up, 6.0, 28.1)).kind is Kind.ON_DEMAND
    assert UniformProgress().decide(state(none_up, 6.0, 27.9)).kind is Kind.WAIT


def test_uniform_progress_leaves_on_demand_only_when_two_changeovers_ahead_of_the_line() -> None:
    dear = Held("a", False, 0.0, 0.0)
    line = 32.0 - 6.0 * 32 / 48
    assert UniformProgress().decide(state(STEADY, 6.0, line - 0.2, dear)).kind is Kind.HOLD
    assert UniformProgress().decide(state(STEADY, 6.0, line - 0.3, dear)).kind is Kind.SPOT


def test_uniform_progress_in_one_zone_tries_no_other() -> None:
    policy = UniformProgress(home="c")
    assert policy.decide(state()).zone == "c"
    assert policy.decide(state(refused(STEADY, 0.0, "c"))).kind is Kind.WAIT


def test_on_demand_only_takes_the_cheapest_zone_and_stays() -> None:
    assert OnDemandOnly().decide(state()).zone == "a"
    assert OnDemandOnly().decide(state(held=Held("a", False, 0.0, 0.0))).kind is Kind.HOLD


def test_cost_to_go_takes_the_best_zone_that_is_to_be_had() -> None:
    policy = CostToGo()
    assert policy.decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    tight = replace(TERMS, work_h=46.0)  # no slack to wait for the better one in
    assert policy.decide(state(refused(STEADY, 0.0, "a", "b"), work_left_h=46.0, terms=tight)).zone == "c"


def test_cost_to_go_does_not_try_spot_that_is_dearer_than_on_demand() -> None:
    dear = Held("a", False, 0.0, 0.0)
    action = CostToGo().decide(state(held=dear, prices=(3.5, 3.5, 3.5)))
    assert action.kind is Kind.HOLD


def test_cost_to_go_leaves_a_machine_when_its_price_jumps_and_another_zone_is_cheap() -> None:
    seen = STEADY.looked("a", True, 1.0)
    held = Held("a", True, 0.0, 0.0)
    assert CostToGo().decide(state(refused(seen, 1.0, "b"), 1.0, 31.0, held)).kind is Kind.HOLD
    jumped = CostToGo().decide(state(refused(seen, 1.0, "b"), 1.0, 31.0, held, (2.9, 2.9, 0.9)))
    assert (jumped.kind, jumped.zone) == (Kind.SPOT, "c")


def test_cost_to_go_counts_the_fee_of_a_move() -> None:
    held, seen = Held("a", True, 0.0, 0.0), refused(STEADY.looked("a", True, 1.0), 1.0, "b")
    cheaper = (1.0, 0.9, 0.8)
    assert CostToGo().decide(state(seen, 1.0, 31.0, held, cheaper)).zone == "c"
    fees = tuple(tuple(20.0 * (a != b) for b in range(3)) for a in range(3))
    priced = replace(TERMS, move_usd=fees)
    assert CostToGo().decide(state(seen, 1.0, 31.0, held, cheaper, priced)).kind is Kind.HOLD


def test_cost_to_go_is_a_pure_function_of_the_state() -> None:
    used, up = CostToGo(), np.array([[i // 7 % 2 == 0, i // 5 % 3 == 0, i // 11 % 2 == 0] for i in range(300)])
    prices = np.tile([1.0, 0.9, 1.1], (300, 1))
    first = play(Guarded(used), Recorded(up, prices), TERMS)
    assert play(Guarded(used), Recorded(up, prices), TERMS) == first
    assert play(Guarded(CostToGo()), Recorded(up, prices), TERMS) == first


def test_pace_takes_the_cheapest_zone_and_waits_while_there_is_time_for_it() -> None:
    assert Pace().decide(state()).zone == "b"  # it was never up, but a try in vain is free
    assert Pace().decide(state(refused(STEADY, 0.0, "b"))).zone == "a"
    none = refused(STEADY, 0.0, "a", "b", "c")
    assert Pace().decide(state(none, work_left_h=32.0)).kind is Kind.WAIT
    assert Pace().decide(state(none, work_left_h=45.0)).kind is Kind.ON_DEMAND


def test_pace_does_not_try_spot_that_is_dearer_than_on_demand() -> None:
    assert Pace().decide(state(prices=(3.5, 3.5, 3.5), work_left_h=45.0)).kind is Kind.ON_DEMAND


def test_pace_keeps_slack_for_changeovers_before_it_leaves_what_it_holds() -> None:
    on_demand = Held("a", False, 0.0, 0.0)
    assert Pace().decide(state(work_left_h=32.0, held=on_demand)).kind is Kind.SPOT
    assert Pace().decide(state(work_left_h=46.0, held=on_demand)).kind is Kind.HOLD


def test_pace_moves_when_a_lower_price_pays_for_it() -> None:
    held = Held("c", True, 0.0, 0.0)
    assert Pace().decide(state(held=held, prices=(1.0, 1.0, 1.01))).kind is Kind.HOLD
    assert Pace().decide(state(held=held, prices=(1.0, 0.9, 2.9))).kind is Kind.SPOT


def test_pace_counts_the_changeover_of_on_demand_too_and_waits_for_nothing_that_is_not_worth_it() -> None:
    assert Pace().decide(state(work_left_h=0.1)).kind is Kind.SPOT  # either takes twelve minutes to start
    assert Pace().decide(state(work_left_h=0.1, prices=(2.9, 3.1, 3.1))).kind is Kind.SPOT
    assert Pace().decide(state(work_left_h=20.0, prices=(3.5, 3.5, 3.5))).kind is Kind.ON_DEMAND
