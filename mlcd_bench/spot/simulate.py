"""A job on a recorded market, tick by tick.

The rules, the same for every policy and for the offline optimum (`optimum.py`). Those of 'Can't Be Late' and SkyNomad,
where these say it:

1. At the start of a tick one sees whether the machine that is held has been taken away: a spot machine is lost if its
   zone is down in this tick. The work of the ticks before it is kept (with `checkpoint_h`: except what no checkpoint
   holds).
2. Then the policy decides. It may try zones one after another, without time passing. A try gets a machine if the zone
   is up in this tick. A try in vain costs nothing and is seen; so is nothing else of zones where no machine is held.
3. What is held after that is paid for the whole tick at the price of this tick, and works for the whole tick: a zone
   that is up at the start of a tick is up until its end. A job that ends within a tick pays the tick.
4. Every launch, on spot or on demand, first takes the changeover time, billed, without work, also over several ticks;
   what is left of it is gone when the machine is lost or given back. The first launch takes it, too.
5. A launch away from the checkpoint's zone pays the fee for moving it, at once. The first launch pays none.
6. One machine is held at a time. On-demand is always to be had, at the price of its zone, unless the weather says
   otherwise; what is held is given back before it is tried. Waiting costs nothing.
7. The deadline is counted in whole ticks: those that fit into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market import Action, Held, Kind, Policy, Seen, State, Terms

DONE = 1e-9
"""In hours: work left that is nothing but rounding."""


@dataclass(frozen=True)
class Played:
    """How a job went."""

    cost_usd: float
    finished_h: float | None
    """None if the deadline came first."""
    timeline: tuple[tuple[int, str | None, str], ...]
    """For each tick: its number since the start, the zone, and spot, on_demand or wait."""

    @property
    def met(self) -> bool:
        """Whether the job ended before its deadline."""
        return self.finished_h is not None


class Weather(Protocol):
    """What the market does. It may look at the job, so that a test can make it as hostile as possible."""

    def is_up(self, tick: int, zone: int, state: State) -> bool:
        """Whether spot machines are to be had, or kept, in this tick."""
        ...

    def spot_usd_h(self, tick: int) -> tuple[float, ...]:
        """Spot prices in this tick, by zone."""
        ...


@runtime_checkable
class ScarceOnDemand(Protocol):
    """Weather in which on-demand machines may be missing, too."""

    def has_on_demand(self, tick: int, zone: int) -> bool:
        """Whether on-demand machines are to be had in this tick."""
        ...


class Recorded:
    """The weather of a trace."""

    def __init__(self, up: NDArray[np.bool_], spot_usd_h: NDArray[np.float64]) -> None:
        self._up: list[list[bool]] = up.tolist()
        rows = [tuple(row) for row in spot_usd_h.tolist()]
        for i in range(1, len(rows)):  # prices hardly change: one object for equal rows
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


def play(policy: Policy, weather: Weather, terms: Terms, seen: Seen | None = None) -> Played:
    """Play a job from its first tick to its end or its deadline. A tick is a step of the terms."""
    d = terms.step_h
    state = State(terms, 0.0, terms.work_h, 0.0, 0.0, None, None, weather.spot_usd_h(0), seen or Seen())
    timeline: list[tuple[int, str | None, str]] = []
    for tick in range(whole_ticks(terms)):
        state = replace(state, now_h=tick * d, spot_usd_h=weather.spot_usd_h(tick))
        has_on_demand = partial(weather.has_on_demand, tick) if isinstance(weather, ScarceOnDemand) else always
        is_up = partial(weather.is_up, tick, state=state)
        state = _decided(policy, _after_losses(state, tick, weather), is_up, has_on_demand)
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


def _after_losses(state: State, tick: int, weather: Weather) -> State:
    """Rule 1: what is seen at the start of a tick."""
    held = state.held
    if held is None or not held.is_spot:
        return state
    if weather.is_up(tick, state.terms.zones.index(held.zone), state):
        return replace(state, seen=state.seen.looked(held.zone, True, state.now_h))
    return replace(
        state,
        seen=state.seen.looked(held.zone, False, state.now_h),
        held=None,
        work_left_h=state.work_left_h + state.unsaved_h,
        unsaved_h=0.0,
    )


def always(zone: int) -> bool:
    """On-demand machines are there."""
    return True


def _decided(policy: Policy, state: State, is_up: Callable[[int], bool], has_on_demand: Callable[[int], bool]) -> State:
    """Rule 2: the policy's decision, asked again after every try in vain."""
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
            tried = state.seen_on_demand.looked(action.zone, False, state.now_h)
            state = replace(state, seen_on_demand=tried, held=None, unsaved_h=0.0)
            continue
        if state.held is not None and state.held.is_spot and state.held.zone == action.zone:
            return state
        if is_up(state.terms.zones.index(action.zone)):
            return _launched(replace(state, seen=state.seen.looked(action.zone, True, state.now_h)), action)
        state = replace(state, seen=state.seen.looked(action.zone, False, state.now_h))
    raise AssertionError(f"{policy.name} tries zones again that it has just tried in vain")


def _launched(state: State, action: Action) -> State:
    """Rules 4 and 5. Giving back a machine on purpose saves its work first."""
    assert action.zone is not None
    held = Held(action.zone, action.kind is Kind.SPOT, state.now_h, state.terms.changeover_h)
    fee = state.terms.fee_usd(state.saved_in, action.zone)
    return replace(state, held=held, saved_in=action.zone, unsaved_h=0.0, spent_usd=state.spent_usd + fee)


def _worked(state: State, held: Held, spent_usd: float) -> State:
    """Rule 3: a tick of changeover and work."""
    d, terms = state.terms.step_h, state.terms
    work = max(0.0, d - held.changeover_left_h)
    left = max(0.0, held.changeover_left_h - d)
    unsaved = state.unsaved_h + work
    if terms.checkpoint_h <= 0:
        unsaved = 0.0
    elif unsaved > terms.checkpoint_h:  # checkpoints are made while it works: no more than their distance is at risk
        unsaved -= floor(unsaved / terms.checkpoint_h) * terms.checkpoint_h
    return replace(
        state,
        work_left_h=state.work_left_h - work,
        unsaved_h=unsaved,
        spent_usd=spent_usd,
        held=held if left == held.changeover_left_h else replace(held, changeover_left_h=left),
    )
