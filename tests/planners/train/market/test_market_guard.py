"""The deadline and the budget are kept, whatever the policy and the spot market do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import THOROUGH
from mlcd_fixtures.hostile_markets import MOODS, Hostile, RandomPolicy, Scarce, hostile_terms, scarce_terms

from mlcd.planners.train.market import (
    Action,
    CostToGo,
    Greedy,
    Guarded,
    HeldMachines,
    Kind,
    Observations,
    OnDemandOnly,
    Pace,
    Policy,
    State,
    Terms,
    UniformProgress,
    fits_on_demand_now,
    is_safe,
)
from mlcd_bench.spot import play

SEEDS = st.integers(0, 1_000_000)
TERMS = Terms(("a", "b"), 10.0, 8.0, 0.5, 0.25, (3.0, 3.5))


def state(work_left_h: float, now_h: float = 0.0, held: HeldMachines | None = None, terms: Terms = TERMS) -> State:
    return State(terms, now_h, work_left_h, 0.0, 0.0, held, None, (1.0, 1.1), Observations())


def keeps_limits(policy: Policy, mood: str, seed: int) -> bool:
    terms = hostile_terms(seed)
    played = play(Guarded(policy), Hostile(mood, seed, terms), terms)
    within = terms.budget_usd is None or played.cost_usd <= terms.budget_usd * (1 + 1e-9)
    return played.met and within


@THOROUGH
@given(SEEDS, st.sampled_from(MOODS))
def test_a_random_policy_misses_no_deadline_and_exceeds_no_budget(seed: int, mood: str) -> None:
    assert keeps_limits(RandomPolicy(seed), mood, seed)


@given(SEEDS, st.sampled_from(MOODS))
def test_no_policy_misses_a_deadline_or_exceeds_a_budget(seed: int, mood: str) -> None:
    policies: tuple[Policy, ...] = (
        Pace(),
        CostToGo(),
        Greedy(),
        UniformProgress(),
        UniformProgress(only_zone="zone-0"),
    )
    assert all(keeps_limits(policy, mood, seed) for policy in policies)


@THOROUGH
@given(SEEDS, st.sampled_from(MOODS), st.sampled_from([None, Pace(), Greedy(), UniformProgress(), OnDemandOnly()]))
def test_the_deadline_is_met_if_on_demand_machines_come_within_the_stated_wait(
    seed: int, mood: str, policy: Policy | None
) -> None:
    terms, most = scarce_terms(seed)
    played = play(Guarded(policy or RandomPolicy(seed)), Scarce(mood, seed, terms, most=most), terms)
    assert played.met
    assert terms.budget_usd is None or played.cost_usd <= terms.budget_usd * (1 + 1e-9)


@THOROUGH
@given(SEEDS, st.sampled_from(MOODS), st.sampled_from([0.0, 1.0, math.inf]), st.booleans())
def test_the_budget_is_kept_if_on_demand_machines_do_not_come(
    seed: int, mood: str, wait_h: float, reckless: bool
) -> None:
    terms = hostile_terms(seed)
    terms = replace(terms, fallback_wait_h=wait_h, fallback_zones=terms.zones[:1])
    never = Scarce(mood, seed, terms, most=10_000)
    played = play(Guarded(RandomPolicy(seed) if reckless else Pace()), never, terms)
    assert terms.budget_usd is None or played.cost_usd <= terms.budget_usd * (1 + 1e-9)


def test_time_is_reserved_for_the_wait_for_on_demand_machines() -> None:
    terms = replace(TERMS, fallback_wait_h=1.0)
    assert is_safe(state(8.25, terms=terms), Action(Kind.WAIT))
    assert not is_safe(state(8.26, terms=terms), Action(Kind.WAIT))
    assert fits_on_demand_now(state(9.5, terms=terms))  # once they are there, nothing is waited for


def test_the_next_zone_is_tried_if_one_has_no_on_demand_machines() -> None:
    asked = state(9.5)
    first = Guarded(OnDemandOnly()).decide(asked)
    assert (first.kind, first.zone) == (Kind.ON_DEMAND, "a")
    refused = replace(asked, on_demand_observations=Observations().observed("a", False, 0.0))
    assert Guarded(OnDemandOnly()).decide(refused).zone == "b"
    both = replace(asked, on_demand_observations=refused.on_demand_observations.observed("b", False, 0.0))
    assert Guarded(OnDemandOnly()).decide(both).kind is Kind.HOLD


def test_zones_with_recent_on_demand_machines_are_tried_first() -> None:
    terms = replace(TERMS, fallback_wait_h=1.0, fallback_zones=("b",))
    assert Guarded(OnDemandOnly()).decide(state(8.0, terms=terms)).zone == "b"


def test_any_available_machine_is_taken_once_the_wait_was_too_short() -> None:
    terms, none = (
        replace(TERMS, fallback_wait_h=1.0, fallback_zones=("a",)),
        Observations().observed("a", False, 0.5).observed("b", False, 0.5),
    )
    late = replace(state(9.4, 0.5, terms=terms), on_demand_observations=none)
    assert Guarded(OnDemandOnly()).decide(late).kind is Kind.SPOT
    working = replace(late, held=HeldMachines("a", True, 0.0, 0.0))
    assert Guarded(OnDemandOnly()).decide(working).kind is Kind.HOLD


def test_the_guard_changes_nothing_while_there_is_enough_slack() -> None:
    wanted = Action(Kind.SPOT, "a", "cheap")

    class Fixed:
        name = "fixed"

        def decide(self, state: State) -> Action:
            return wanted

    assert Guarded(Fixed()).decide(state(5.0)) == wanted
    assert Guarded(Fixed()).decide(state(9.5)).kind is Kind.ON_DEMAND


@pytest.mark.parametrize(
    ("work_left_h", "allowed"),
    [(9.0, True), (9.01, False)],  # 10 h = 0.5 h for a failed launch + 0.5 h for the fallback's + 9 h
)
def test_a_launch_needs_slack_for_itself_and_the_fallback(work_left_h: float, allowed: bool) -> None:
    assert is_safe(state(work_left_h), Action(Kind.SPOT, "a")) is allowed


@pytest.mark.parametrize(("work_left_h", "allowed"), [(9.25, True), (9.26, False)])
def test_waiting_needs_slack_for_a_step_and_the_fallback(work_left_h: float, allowed: bool) -> None:
    assert is_safe(state(work_left_h), Action(Kind.WAIT)) is allowed


def test_holding_a_working_machine_needs_only_slack_for_the_fallback() -> None:
    works = HeldMachines("a", True, 0.0, 0.0)
    assert is_safe(state(9.5, held=works), Action(Kind.HOLD))
    assert not is_safe(state(9.51, held=works), Action(Kind.HOLD))


def test_work_that_no_checkpoint_holds_is_counted_as_lost() -> None:
    works, terms = HeldMachines("a", True, 0.0, 0.0), replace(TERMS, checkpoint_h=1.0)
    assert is_safe(state(8.5, held=works, terms=terms), Action(Kind.HOLD))
    assert not is_safe(state(8.51, held=works, terms=terms), Action(Kind.HOLD))


def test_the_budget_is_guarded_like_the_deadline() -> None:
    exact = replace(TERMS, budget_usd=(8.0 + 0.5) * 3.0)
    assert fits_on_demand_now(state(8.0, terms=exact))
    assert is_safe(state(8.0, terms=exact), Action(Kind.WAIT))
    assert not is_safe(state(8.0, terms=exact), Action(Kind.SPOT, "a"))  # half an hour of spot is not in it
    enough = replace(exact, budget_usd=(8.0 + 0.5) * 3.0 + 0.5)
    assert is_safe(state(8.0, terms=enough), Action(Kind.SPOT, "a"))


class ToB:
    """Wants to be on spot in b."""

    name = "to-b"

    def decide(self, state: State) -> Action:
        return Action(Kind.SPOT, "b")


@pytest.mark.parametrize(("budget_usd", "kind"), [(100.0, Kind.SPOT), (36.0, Kind.HOLD), (24.0, Kind.ON_DEMAND)])
def test_a_move_is_not_made_if_the_budget_does_not_cover_its_fee(budget_usd: float, kind: Kind) -> None:
    terms = replace(TERMS, budget_usd=budget_usd, move_usd=((0.0, 20.0), (20.0, 0.0)))
    there = replace(state(8.0, held=HeldMachines("a", True, 0.0, 0.0), terms=terms), checkpoint_zone="a")
    assert Guarded(ToB()).decide(there).kind is kind
    assert is_safe(there, Action(Kind.SPOT, "b")) is (kind is Kind.SPOT)


def test_a_second_launch_on_demand_is_not_made() -> None:
    class Restless:
        name = "restless"

        def decide(self, state: State) -> Action:
            return Action(Kind.ON_DEMAND, "b")

    held = HeldMachines("a", False, 0.0, 0.0)
    assert Guarded(Restless()).decide(state(5.0, held=held)).kind is Kind.HOLD
