"""The hard rule: after any action, on-demand machines can still finish the job by the deadline and within the budget.

The guard wraps any policy and does not depend on it. It assumes that on-demand machines come within a stated wait,
which is mostly zero. Then no behaviour of the spot market can lead to a missed deadline.

Symbols   d      the longest time between two decisions (`step_h`); machines are billed in whole steps
          N      whole steps until the deadline
          w      work left; u, work since the last checkpoint; k, the upper bound of u (`checkpoint_h`)
          c      changeover: the longest time to stop, start and restore
          q      wait for on-demand machines (`fallback_wait_h`) in whole steps; it costs time, but no money
          p_j    work done j steps after the action without a preemption: max(0, j d - changeover still to come)

An action other than on-demand is allowed if, for every j = 1, 2, ..., on-demand machines can finish the job after a
preemption at step j:

    ceil((w - p_j + min(u + p_j, k) + c) / d) + q <= N - j      and in money
    spent + action's price x j d + on-demand price x ceil((...) / d) d <= budget

Once p_j grows by d with each step and min() has reached k, the left side falls as fast as the right one, so only the
first few j have to be checked.

At the last moment that the rule allows, the job goes on demand. If a zone has no on-demand machines, the next zone is
tried, and all of them again at every step while q lasts. After that the deadline can no longer be promised, and the
job takes whatever machines it can get.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, isfinite

from mlcd.planners.train.market.protocol import Action, HeldMachines, Kind, Policy, State

STAY_REASON = "moving would leave too little time or money for going on demand later"
ROUNDING = 1e-6
"""Tolerance in steps: sums of floating-point hours may be slightly more than a whole step."""


@dataclass(frozen=True)
class Guarded:
    """A policy that never misses the deadline or exceeds the budget while on-demand machines are available."""

    policy: Policy

    @property
    def name(self) -> str:
        """The name of the wrapped policy."""
        return self.policy.name

    def decide(self, state: State) -> Action:
        """The policy's action if it is safe, else a safe one."""
        return apply_guard(state, self.policy.decide(state))


def apply_guard(state: State, action: Action) -> Action:
    """The action if it is safe; else stay on spot if that is safe; else go on demand."""
    if action.kind is Kind.ON_DEMAND:
        return _on_demand(state, action)
    if action.kind is Kind.SPOT and action.zone is not None and state.was_refused(action.zone):
        action = Action(Kind.HOLD, because=f"a launch in {action.zone} failed a moment ago")
    if is_safe(state, action):
        return action
    if action.kind is Kind.SPOT and state.on_spot and is_safe(state, stay := Action(Kind.HOLD, because=STAY_REASON)):
        return stay
    return _on_demand(state, Action(Kind.ON_DEMAND, None, "the last moment to finish on demand in time"))


def _on_demand(state: State, action: Action) -> Action:
    """Go on demand where it can be afforded. An on-demand machine is kept: another launch is another changeover."""
    if state.on_demand:
        return Action(Kind.HOLD, because=action.because)
    if not _in_time(state, _steps_needed(state), 0):
        return _take_anything(state, action)
    if (zone := _on_demand_zone(state, action.zone)) is not None:
        return Action(Kind.ON_DEMAND, zone, action.because)
    return Action(Kind.HOLD, because="no zone has on-demand machines; all are tried again at the next step")


def is_safe(state: State, action: Action) -> bool:
    """Whether on-demand machines can finish the job after a preemption at any moment after this action."""
    if action.kind is not Kind.HOLD:  # giving up machines may lose the work since the last checkpoint
        state = replace(state, work_left_h=state.work_left_h + state.unsaved_h, unsaved_h=0.0)
    held = _held_after(state, action)
    if held is not None and not held.is_spot:
        return True
    usd_h, fee = _price(state, action, held)
    changeover = max(held.changeover_left_h, held.idle_h) if held is not None else 0.0
    terms = state.terms
    steps = 1 if held is None else ceil((changeover + terms.checkpoint_h) / terms.step_h) + 1
    return all(_fits_after(state, held, changeover, usd_h, fee, j) for j in range(1, steps + 1))


def fits_on_demand_now(state: State) -> bool:
    """Whether the job would finish in time and within the budget if it went on demand now."""
    needed = _steps_needed(state)
    return _in_time(state, needed, 0) and _in_budget(state, needed, state.checkpoint_zone, 0.0)


def steps_left(state: State) -> int:
    """Whole steps until the deadline."""
    return floor(state.time_left_h / state.terms.step_h + ROUNDING)


def _held_after(state: State, action: Action) -> HeldMachines | None:
    if action.kind is Kind.HOLD:
        return state.held
    if action.kind is Kind.WAIT or action.zone is None:
        return None
    return HeldMachines(action.zone, action.kind is Kind.SPOT, state.now_h, state.terms.changeover_h)


def _price(state: State, action: Action, held: HeldMachines | None) -> tuple[float, float]:
    """Dollars an hour after the action, and the fee of a launch."""
    if held is None:
        return 0.0, 0.0
    fee = state.terms.fee_usd(state.checkpoint_zone, held.zone) if action.kind is Kind.SPOT else 0.0
    return state.spot_price(held.zone), fee


def _fits_after(
    state: State, held: HeldMachines | None, changeover_h: float, usd_h: float, fee_usd: float, j: int
) -> bool:
    """Whether on-demand machines can finish the job if what is held is preempted after j steps."""
    done = max(0.0, j * state.terms.step_h - changeover_h) if held is not None else 0.0
    unsaved = min(state.unsaved_h + done, state.terms.checkpoint_h) if held is not None else 0.0
    needed = _steps_needed(state, done, unsaved)
    if not _in_time(state, needed, j, state.terms.fallback_wait_h):
        return False
    origin = held.zone if held is not None else state.checkpoint_zone
    return _in_budget(state, needed, origin, fee_usd + usd_h * j * state.terms.step_h)


def _steps_needed(state: State, done_h: float = 0.0, unsaved_h: float = 0.0) -> int:
    """Whole steps that the rest of the job takes on demand; none if it ended before the preemption."""
    terms, left_h = state.terms, state.work_left_h - done_h
    if left_h <= ROUNDING * terms.step_h:
        return 0
    return ceil((left_h + unsaved_h + terms.changeover_h) / terms.step_h - ROUNDING)


def _in_time(state: State, needed: int, j: int, wait_h: float = 0.0) -> bool:
    """Whether the needed steps fit before the deadline, after j steps and a wait for the machines."""
    if needed == 0:
        return True
    return isfinite(wait_h) and j + ceil(wait_h / state.terms.step_h - ROUNDING) + needed <= steps_left(state)


def _in_budget(state: State, needed: int, origin: str | None, before_usd: float) -> bool:
    """Whether the budget pays for the needed steps on demand, after `before_usd`. If on-demand machines may be missing:
    in every fallback zone, since any of them may be the first to have machines."""
    terms = state.terms
    named = terms.fallback_zones if terms.fallback_wait_h > 0 else None
    zones = named or (terms.fallback_zone(origin),)
    return all(_can_pay(state, needed, origin, zone, before_usd) for zone in zones)


def _can_pay(state: State, needed: int, origin: str | None, zone: str, before_usd: float = 0.0) -> bool:
    terms = state.terms
    if terms.budget_usd is None:
        return True
    fee_usd = terms.fee_usd(origin, zone) if needed else 0.0
    usd = needed * terms.step_h * terms.on_demand_price(zone) + fee_usd
    return state.spent_usd + before_usd + usd <= terms.budget_usd * (1 + 1e-12)


def _on_demand_zone(state: State, wanted: str | None) -> str | None:
    """The zone for an on-demand launch: the wanted one, else the cheapest one that was not just tried. With a budget,
    only zones that it pays for."""
    zones = state.terms.zones_by_on_demand_cost(state.checkpoint_zone)
    needed = _steps_needed(state, unsaved_h=state.unsaved_h)
    payable = [zone for zone in zones if _can_pay(state, needed, state.checkpoint_zone, zone)] or zones[:1]
    if wanted is not None and state.terms.budget_usd is None:
        payable = [wanted, *payable]
    return next((zone for zone in payable if not state.was_refused_on_demand(zone)), None)


def _take_anything(state: State, action: Action) -> Action:
    """On demand would be late. If on-demand machines may be missing, spot machines are kept or taken, too, as long as
    the budget allows."""
    zone, scarce = _on_demand_zone(state, action.zone), state.terms.fallback_zones is not None
    affordable = [each for each in state.terms.zones if _can_pay_spot_step(state, each)]
    if scarce and state.held is not None and state.held.zone in affordable:
        return Action(Kind.HOLD, because="on demand would be late; the machines that work are kept")
    if zone is not None and (not scarce or _can_pay(state, _steps_needed(state), state.checkpoint_zone, zone)):
        return Action(Kind.ON_DEMAND, zone, action.because)
    if scarce and (spot := next((each for each in affordable if not state.was_refused(each)), None)) is not None:
        return Action(Kind.SPOT, spot, "no zone has on-demand machines; any available machine is taken")
    return Action(Kind.WAIT, because="no zone has machines")


def _can_pay_spot_step(state: State, zone: str) -> bool:
    """Whether the budget pays for a step on the spot market of a zone."""
    if state.terms.budget_usd is None:
        return True
    usd = state.terms.fee_usd(state.checkpoint_zone, zone) + state.spot_price(zone) * state.terms.step_h
    return state.spent_usd + usd <= state.terms.budget_usd
