"""Held machines are given up only for a zone that is likely enough to have some."""

from __future__ import annotations

from dataclasses import replace

from mlcd.planners.train.market.observations import Observations
from mlcd.planners.train.market.protocol import Action, HeldMachines, Kind, State, Terms
from mlcd.planners.train.market.switching import avoid_risky_switch, is_worth_trying

TERMS = Terms(("a", "b"), 48.0, 30.0, 0.2, 1 / 12, (4.0, 4.0))
WANTS_B = Action(Kind.SPOT, "b")
ON_DEMAND, ON_SPOT = HeldMachines("a", False, 0.0, 0.0), HeldMachines("a", True, 0.0, 0.0)


def state(
    held: HeldMachines | None, b_usd_h: float = 1.0, observations: Observations | None = None, now_h: float = 10.0
) -> State:
    return State(TERMS, now_h, 20.0, 0.0, 0.0, held, "a", (1.5, b_usd_h), observations or Observations())


def test_on_demand_is_given_up_for_a_zone_that_was_never_tried():
    assert is_worth_trying(state(ON_DEMAND), "b")


def test_a_zone_without_machines_is_tried_later_if_there_is_less_to_gain():
    observations = Observations().observed("b", True, 9.5).observed("b", False, 9.9)

    def pause_h(held: HeldMachines) -> float:
        times = (10 + i / 20 for i in range(400))
        return next(now_h for now_h in times if is_worth_trying(quick(held, observations, now_h), "b")) - 9.9

    assert 0.2 < pause_h(ON_DEMAND) < pause_h(ON_SPOT) < 2.0


def quick(held: HeldMachines, observations: Observations, now_h: float) -> State:
    """With a changeover of three minutes."""
    return replace(state(held, 1.0, observations, now_h), terms=replace(TERMS, changeover_h=0.05))


def test_other_actions_are_not_changed():
    refused = Observations().observed("b", False, 9.9)
    assert avoid_risky_switch(state(None, observations=refused), WANTS_B) == WANTS_B
    held = avoid_risky_switch(state(ON_SPOT, observations=refused), WANTS_B)
    assert (held.kind, "may have no machines" in held.because) == (Kind.HOLD, True)
    assert avoid_risky_switch(state(ON_SPOT, 2.0, refused, 40.0), WANTS_B).kind is Kind.HOLD  # a more expensive zone
