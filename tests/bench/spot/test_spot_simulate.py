"""The rules of the simulator, one by one, on traces that can be followed by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from mlcd.planners.train.market import Action, Kind, State, Terms
from mlcd_bench.spot import Played, RecordedConditions, play


@dataclass
class Script:
    """Takes the scripted action at each tick, and holds afterwards."""

    actions: dict[int, list[Action]]
    name: str = "script"
    states: list[State] = field(default_factory=list)

    def decide(self, state: State) -> Action:
        self.states.append(state)
        waiting = self.actions.get(round(state.now_h / state.terms.step_h), [])
        return waiting.pop(0) if waiting else Action(Kind.HOLD)


def terms(work_h: float = 1.0, changeover_h: float = 0.25, checkpoint_h: float = 0.0) -> Terms:
    fees = ((0.0, 0.5), (0.5, 0.0))
    return Terms(("a", "b"), 4.0, work_h, changeover_h, 0.5, (3.0, 4.0), checkpoint_h=checkpoint_h, move_usd=fees)


def played(up: list[str], script: Script, job: Terms) -> Played:
    """A string for each zone, a letter for each tick: u for up."""
    rows = np.array([[letter == "u" for letter in zone] for zone in up]).T
    prices = np.tile([1.0, 1.2], (len(rows), 1))
    return play(script, RecordedConditions(rows, prices), job)


def spot(zone: str) -> Action:
    return Action(Kind.SPOT, zone)


def test_a_launch_pays_its_changeover_and_whole_ticks() -> None:
    run = played(["uuuuuuuu", "........"], Script({0: [spot("a")]}), terms())
    assert run.finished_h == pytest.approx(1.25)
    assert run.cost_usd == pytest.approx(3 * 0.5 * 1.0)
    assert [each[2] for each in run.timeline] == ["spot"] * 3


def test_a_preemption_is_observed_at_the_start_of_a_tick_and_earlier_work_is_kept() -> None:
    script = Script({0: [spot("a")], 3: [spot("a")]})
    run = played(["uu.uuuuu", "........"], script, terms())
    assert [each[2] for each in run.timeline] == ["spot", "spot", "wait", "spot"]
    assert run.finished_h == pytest.approx(1.5 + 0.25 + 0.25)
    assert script.states[2].held is None
    assert script.states[2].work_left_h == pytest.approx(0.25)


def test_with_checkpoints_a_preemption_destroys_work_since_the_last_one() -> None:
    script = Script({0: [spot("a")]})
    played(["uuu.uuuu", "........"], script, terms(work_h=3.0, checkpoint_h=1.0))
    assert script.states[2].unsaved_h == pytest.approx(0.75)
    assert script.states[3].held is None
    assert script.states[3].work_left_h == pytest.approx(3.0 - 1.0)


def test_a_failed_launch_is_free_and_observed_and_the_policy_is_asked_again() -> None:
    script = Script({0: [spot("a"), spot("b")]})
    run = played(["........", "uuuuuuuu"], script, terms())
    assert run.timeline[0] == (0, "b", "spot")
    assert [state.was_refused("a") for state in script.states[:2]] == [False, True]
    assert run.cost_usd == pytest.approx(3 * 0.5 * 1.2)


def test_a_move_pays_the_fee_and_another_changeover_and_the_first_launch_no_fee() -> None:
    script = Script({0: [spot("a")], 1: [spot("b")]})
    run = played(["uuuuuuuu", "uuuuuuuu"], script, terms())
    assert [each[1] for each in run.timeline] == ["a", "b", "b"]
    assert run.finished_h == pytest.approx(0.5 + 0.25 + 0.75)
    assert run.cost_usd == pytest.approx(0.5 + 2 * 0.6 + 0.5)


def test_a_changeover_may_take_several_ticks_and_is_lost_with_the_machine() -> None:
    script = Script({0: [spot("a")], 2: [spot("a")]})
    run = played(["u.uuuuuu", "........"], script, terms(work_h=0.5, changeover_h=0.75))
    assert [each[2] for each in run.timeline] == ["spot", "wait", "spot", "spot", "spot"]
    assert run.finished_h == pytest.approx(1.0 + 0.75 + 0.5)


def test_on_demand_is_always_available_and_a_deadline_can_be_missed() -> None:
    late = played(["........", "........"], Script({6: [Action(Kind.ON_DEMAND, "a")]}), terms())
    assert not late.met
    on_time = played(["........", "........"], Script({0: [Action(Kind.ON_DEMAND, "a")]}), terms())
    assert on_time.met
    assert on_time.cost_usd == pytest.approx(3 * 0.5 * 3.0)


def test_a_policy_that_retries_an_unavailable_zone_at_once_is_an_error() -> None:
    with pytest.raises(AssertionError, match="has just failed"):
        played(["........", "........"], Script({0: [spot("a")] * 9}), terms())
