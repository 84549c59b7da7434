"""Simulates a job on a recorded market, tick by tick.

The rules are the same for every policy and for the offline optimum (`optimum.py`). They are those of 'Can't Be Late'
and SkyNomad, where these papers state them:

1. At the start of a tick, a held spot machine is preempted if its zone is down in this tick. The work of the ticks
   before is kept (with `checkpoint_h`: except the work since the last checkpoint).
2. Then the policy decides. It may try zones one after another, without time passing. A launch succeeds if the zone is
   up in this tick. A failed launch costs nothing and is observed. Zones that are not tried or held are not observed.
3. What is held then is paid for the whole tick at the price of this tick, and works for the whole tick: a zone that is
   up at the start of a tick is up until its end. A job that ends within a tick pays the whole tick.
4. Every launch, on spot or on demand and including the first, begins with the changeover time, which is billed and does
   no work, possibly over several ticks. What is left of it is lost if the machine is preempted or given up.
5. A launch in another zone than the checkpoint's pays the fee for moving it, at once. The first launch pays none.
6. One machine is held at a time. On-demand machines are always available, at the price of their zone, unless the
   conditions say otherwise. What is held is given up before on-demand is tried. Waiting costs nothing.
7. The deadline is counted in whole ticks, rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market import Action, HeldMachines, Kind, Observations, Policy, State, Terms

DONE = 1e-9
"""Hours of work left that are only rounding errors."""


@dataclass(frozen=True)
class Played:
    """The outcome of a job."""

    cost_usd: float
    finished_h: float | None
    """None if the deadline was missed."""
    timeline: tuple[tuple[int, str | None, str], ...]
    """For each tick: its number since the start, the zone, and spot, on_demand or wait."""

    @property
    def met(self) -> bool:
        """Whether the job ended before its deadline."""
        return self.finished_h is not None


class Conditions(Protocol):
    """What the market does. It may depend on the job's state, so that a test can make it as hostile as possible."""

    def is_up(self, tick: int, zone: int, state: State) -> bool:
        """Whether spot machines are available, or stay, in this tick."""
        ...

    def spot_usd_h(self, tick: int) -> tuple[float, ...]:
        """Spot prices in this tick, by zone."""
        ...


@runtime_checkable
class ScarceOnDemand(Protocol):
    """Conditions in which on-demand machines may be missing, too."""

    def has_on_demand(self, tick: int, zone: int) -> bool:
        """Whether on-demand machines are available in this tick."""
        ...


class RecordedConditions:
    """The conditions of a trace."""

    def __init__(self, up: NDArray[np.bool_], spot_usd_h: NDArray[np.float64]) -> None:
        self._up: list[list[bool]] = up.tolist()
        rows = [tuple(row) for row in spot_usd_h.tolist()]
        for i in range(1, len(rows)):  # prices rarely change: share equal rows
            if rows[i] == rows[i - 1]:
                rows[i] = rows[i - 1]
        self._prices = rows

    def is_up(self, tick: int, zone: int, state: State) -> bool:
        """As recorded."""
        return self._up[tick][zone]

    def spot_usd_h(self, tick: int) -> tuple[float, ...]:
        """As recorded."""
        return self._prices[tick]


def whole_ticks(terms: Terms) -> int:
    """How many ticks fit before the deadline."""
    return floor(terms.deadline_h / terms.step_h + 1e-6)


def play(policy: Policy, conditions: Conditions, terms: Terms, observations: Observations | None = None) -> Played:
    """Simulate a job from its first tick to its end or its deadline. A tick is a step of the terms."""
    d = terms.step_h
    state = State(
        terms, 0.0, terms.work_h, 0.0, 0.0, None, None, conditions.spot_usd_h(0), observations or Observations()
    )
    timeline: list[tuple[int, str | None, str]] = []
    for tick in range(whole_ticks(terms)):
        state = replace(state, now_h=tick * d, spot_usd_h=conditions.spot_usd_h(tick))
        has_on_demand = (
            partial(conditions.has_on_demand, tick) if isinstance(conditions, ScarceOnDemand) else always_available
        )
        is_up = partial(conditions.is_up, tick, state=state)
        state = _decided(policy, _after_preemption(state, tick, conditions), is_up, has_on_demand)
        held = state.held
        if held is None:
            timeline.append((tick, None, "wait"))
            continue
        timeline.append((tick, held.zone, "spot" if held.is_spot else "on_demand"))
        usd_h = state.spot_price(held.zone) if held.is_spot else terms.on_demand_price(held.zone)
        spent = state.spent_usd + usd_h * d
        if state.work_left_h <= d - held.changeover_left_h + DONE:
            ended = tick * d + held.changeover_left_h + state.work_left_h
            return Played(spent, ended, tuple(timeline))
        state = _worked(state, held, spent)
    return Played(state.spent_usd, None, tuple(timeline))


def _after_preemption(state: State, tick: int, conditions: Conditions) -> State:
    """Rule 1: preemption at the start of a tick."""
    held = state.held
    if held is None or not held.is_spot:
        return state
    if conditions.is_up(tick, state.terms.zones.index(held.zone), state):
        return replace(state, observations=state.observations.observed(held.zone, True, state.now_h))
    return replace(
        state,
        observations=state.observations.observed(held.zone, False, state.now_h),
        held=None,
        work_left_h=state.work_left_h + state.unsaved_h,
        unsaved_h=0.0,
    )


def always_available(zone: int) -> bool:
    """On-demand machines are always available."""
    return True


def _decided(policy: Policy, state: State, is_up: Callable[[int], bool], has_on_demand: Callable[[int], bool]) -> State:
    """Rule 2: the policy's decision. It is asked again after every failed launch."""
    for _ in range(2 * len(state.terms.zones) + 2):
        action = policy.decide(state)
        if action.kind is Kind.HOLD:
            return state
        if action.kind is Kind.WAIT:
            return replace(state, held=None, unsaved_h=0.0)
        assert action.zone is not None
        if action.kind is Kind.ON_DEMAND:
            if has_on_demand(state.terms.zones.index(action.zone)):
                return _launched(state, action)
            failed = state.on_demand_observations.observed(action.zone, False, state.now_h)
            state = replace(state, on_demand_observations=failed, held=None, unsaved_h=0.0)
            continue
        if state.held is not None and state.held.is_spot and state.held.zone == action.zone:
            return state
        if is_up(state.terms.zones.index(action.zone)):
            return _launched(
                replace(state, observations=state.observations.observed(action.zone, True, state.now_h)), action
            )
        state = replace(state, observations=state.observations.observed(action.zone, False, state.now_h))
    raise AssertionError(f"{policy.name} tries zones again in which a launch has just failed")


def _launched(state: State, action: Action) -> State:
    """Rules 4 and 5. A machine that is given up on purpose saves its work first."""
    assert action.zone is not None
    held = HeldMachines(action.zone, action.kind is Kind.SPOT, state.now_h, state.terms.changeover_h)
    fee = state.terms.fee_usd(state.checkpoint_zone, action.zone)
    return replace(state, held=held, checkpoint_zone=action.zone, unsaved_h=0.0, spent_usd=state.spent_usd + fee)


def _worked(state: State, held: HeldMachines, spent_usd: float) -> State:
    """Rule 3: a tick of changeover and work."""
    d, terms = state.terms.step_h, state.terms
    work = max(0.0, d - held.changeover_left_h)
    left = max(0.0, held.changeover_left_h - d)
    unsaved = state.unsaved_h + work
    if terms.checkpoint_h <= 0:
        unsaved = 0.0
    elif unsaved > terms.checkpoint_h:  # checkpoints are saved while it works
        unsaved -= floor(unsaved / terms.checkpoint_h) * terms.checkpoint_h
    return replace(
        state,
        work_left_h=state.work_left_h - work,
        unsaved_h=unsaved,
        spent_usd=spent_usd,
        held=held if left == held.changeover_left_h else replace(held, changeover_left_h=left),
    )
