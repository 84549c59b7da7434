"""What is held is given back for other spot machines only where these are likely enough to be had."""

from __future__ import annotations

from dataclasses import replace

from mlcd.planners.train.market.leaving import careful, is_worth_a_try
from mlcd.planners.train.market.protocol import Action, Held, Kind, State, Terms
from mlcd.planners.train.market.seen import Seen

TERMS = Terms(("a", "b"), 48.0, 30.0, 0.2, 1 / 12, (4.0, 4.0))
WANTS_B = Action(Kind.SPOT, "b")
ON_DEMAND, ON_SPOT = Held("a", False, 0.0, 0.0), Held("a", True, 0.0, 0.0)


def state(held: Held | None, b_usd_h: float = 1.0, seen: Seen | None = None, now_h: float = 10.0) -> State:
    return State(TERMS, now_h, 20.0, 0.0, 0.0, held, "a", (1.5, b_usd_h), seen or Seen())


def test_on_demand_is_left_for_a_zone_that_nobody_has_asked_yet():
    assert is_worth_a_try(state(ON_DEMAND), "b")


def test_a_zone_that_was_empty_is_asked_again_after_a_while_the_later_the_less_there_is_to_gain():
    seen = Seen().looked("b", True, 9.5).looked("b", False, 9.9)

    def pause_h(held: Held) -> float:
        times = (10 + i / 20 for i in range(400))
        return next(now_h for now_h in times if is_worth_a_try(quick(held, seen, now_h), "b")) - 9.9

    assert 0.2 < pause_h(ON_DEMAND) < pause_h(ON_SPOT) < 2.0


def quick(held: Held, seen: Seen, now_h: float) -> State:
    """With a changeover of three minutes."""
    return replace(state(held, 1.0, seen, now_h), terms=replace(TERMS, changeover_h=0.05))


def test_with_nothing_held_or_another_wish_the_policy_is_followed():
    refused = Seen().looked("b", False, 9.9)
    assert careful(state(None, seen=refused), WANTS_B) == WANTS_B
    held = careful(state(ON_SPOT, seen=refused), WANTS_B)
    assert (held.kind, "may have no machines" in held.because) == (Kind.HOLD, True)
    assert careful(state(ON_SPOT, 2.0, refused, 40.0), WANTS_B).kind is Kind.HOLD  # a dearer one
