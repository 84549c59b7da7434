"""The hard rule: whatever a policy wants, the job can still be finished on demand, on time and within the budget.

The rule is separate from every policy and wraps any of them. It needs on-demand machines that are to be had within a
stated wait, mostly none; then no behaviour of the spot market leads to a missed deadline.

Symbols   d      the longest time between two decisions (`step_h`); machines are paid for in whole steps
          N      whole steps until the deadline
          w      work left; u, work that no checkpoint holds yet; k, the most that this can become (`checkpoint_h`)
          c      changeover: stop, start, restore, at the longest
          q      how long on-demand machines may take to come (`fallback_wait_h`), in whole steps; it costs no money
          p_j    work done j steps after the action if nothing goes wrong: max(0, j d - changeover still to come)

An action other than on-demand is allowed if for every j = 1, 2, ... a loss after j steps leaves room for the fallback:

    ceil((w - p_j + min(u + p_j, k) + c) / d) + q <= N - j      and in money
    spent + action's price x j d + on-demand price x ceil((...) / d) d <= budget

Once p_j grows by d with each step and min() has reached k, the left side falls as fast as the right one: only the first
few j have to be looked at.

At the last moment for it the job goes on demand. Where a zone has no machines the next one is asked, and all of them
again at every step while q lasts. After that the deadline cannot be promised any more, and whatever works is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, isfinite

from mlcd.planners.train.market.protocol import Action, Held, Kind, Policy, State

STAYS = "moving would leave too little for going on demand later"
ROUNDING = 1e-6
"""In steps. So much is forgiven, or a sum of floating-point hours would be a step too long."""


@dataclass(frozen=True)
class Guarded:
    """A policy that cannot miss the deadline or pass the budget while on-demand machines are to be had."""

    policy: Policy

    @property
    def name(self) -> str:
        """That of the policy inside."""
        return self.policy.name

    def decide(self, state: State) -> Action:
        """The policy's action if the fallback still fits whatever happens to it; else the fallback."""
        return guarded(state, self.policy.decide(state))


def guarded(state: State, action: Action) -> Action:
    """The action if the fallback still fits whatever happens to it; else the fallback."""
    if action.kind is Kind.ON_DEMAND:
        return _on_demand(state, action)
    if action.kind is Kind.SPOT and action.zone is not None and state.refused(action.zone):
        action = Action(Kind.HOLD, because=f"{action.zone} was tried a moment ago")
    if is_safe(state, action):
        return action
    if action.kind is Kind.SPOT and state.on_spot and is_safe(state, stay := Action(Kind.HOLD, because=STAYS)):
        return stay
    return _on_demand(state, Action(Kind.ON_DEMAND, None, "on demand from here on just fits"))


def _on_demand(state: State, action: Action) -> Action:
    """A second launch on demand would take another changeover, and a dear zone may pass the budget: neither."""
    if state.on_demand:
        return Action(Kind.HOLD, because=action.because)
    if not _in_time(state, _steps_needed(state), 0):
        return _whatever_works(state, action)
    if (zone := _fallback_now(state, action.zone)) is not None:
        return Action(Kind.ON_DEMAND, zone, action.because)
    return Action(Kind.HOLD, because="no zone has on-demand machines; they are asked again")


def is_safe(state: State, action: Action) -> bool:
    """Whether the fallback fits at every moment after this action, at the worst."""
    if action.kind is not Kind.HOLD:  # what no checkpoint holds may go with the machines that are given back
        state = replace(state, work_left_h=state.work_left_h + state.unsaved_h, unsaved_h=0.0)
    held = _after(state, action)
    if held is not None and not held.is_spot:
        return True
    usd_h, fee = _price(state, action, held)
    changeover = max(held.changeover_left_h, held.idle_h) if held is not None else 0.0
    terms = state.terms
    steps = 1 if held is None else ceil((changeover + terms.checkpoint_h) / terms.step_h) + 1
    return all(_fits(state, held, changeover, usd_h, fee, j) for j in range(1, steps + 1))


def fits_now(state: State) -> bool:
    """Whether on-demand, taken at this moment, would finish the job in time and within the budget."""
    needed = _steps_needed(state)
    return _in_time(state, needed, 0) and _in_budget(state, needed, state.saved_in, 0.0)


def steps_left(state: State) -> int:
    """Whole steps until the deadline."""
    return floor(state.time_left_h / state.terms.step_h + ROUNDING)


def _after(state: State, action: Action) -> Held | None:
    if action.kind is Kind.HOLD:
        return state.held
    if action.kind is Kind.WAIT or action.zone is None:
        return None
    return Held(action.zone, action.kind is Kind.SPOT, state.now_h, state.terms.changeover_h)


def _price(state: State, action: Action, held: Held | None) -> tuple[float, float]:
    if held is None:
        return 0.0, 0.0
    fee = state.terms.fee_usd(state.saved_in, held.zone) if action.kind is Kind.SPOT else 0.0
    return state.spot_price(held.zone), fee


def _fits(state: State, held: Held | None, changeover_h: float, usd_h: float, fee_usd: float, j: int) -> bool:
    """Whether the fallback fits if what is held is lost after j steps."""
    done = max(0.0, j * state.terms.step_h - changeover_h) if held is not None else 0.0
    unsaved = min(state.unsaved_h + done, state.terms.checkpoint_h) if held is not None else 0.0
    needed = _steps_needed(state, done, unsaved)
    if not _in_time(state, needed, j, state.terms.fallback_wait_h):
        return False
    origin = held.zone if held is not None else state.saved_in
    return _in_budget(state, needed, origin, fee_usd + usd_h * j * state.terms.step_h)


def _steps_needed(state: State, done_h: float = 0.0, unsaved_h: float = 0.0) -> int:
    """Whole steps that the rest of the job takes on demand; none if it has ended before the loss."""
    terms, left_h = state.terms, state.work_left_h - done_h
    if left_h <= ROUNDING * terms.step_h:
        return 0
    return ceil((left_h + unsaved_h + terms.changeover_h) / terms.step_h - ROUNDING)


def _in_time(state: State, needed: int, j: int, wait_h: float = 0.0) -> bool:
    """Whether so many steps fit before the deadline, after j steps and a wait for the machines."""
    if needed == 0:
        return True
    return isfinite(wait_h) and j + ceil(wait_h / state.terms.step_h - ROUNDING) + needed <= steps_left(state)


def _in_budget(state: State, needed: int, origin: str | None, before_usd: float) -> bool:
    """Whether so many steps on demand can be paid for, after so much; where machines may be missing, in any zone."""
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


def _fallback_now(state: State, wanted: str | None) -> str | None:
    """Where on-demand is asked for now: as wanted, or in the cheapest zone; the next one where that has none."""
    zones, needed = state.terms.by_on_demand_cost(state.saved_in), _steps_needed(state, unsaved_h=state.unsaved_h)
    payable = [zone for zone in zones if _can_pay(state, needed, state.saved_in, zone)] or zones[:1]
    if wanted is not None and state.terms.budget_usd is None:
        payable = [wanted, *payable]
    return next((zone for zone in payable if not state.refused_on_demand(zone)), None)


def _whatever_works(state: State, action: Action) -> Action:
    """On demand would be late. Where it can be scarce, what works is kept, or taken, as long as there is money."""
    zone, scarce = _fallback_now(state, action.zone), state.terms.fallback_zones is not None
    cheap = [each for each in state.terms.zones if _can_pay_step(state, each)]
    if scarce and state.held is not None and state.held.zone in cheap:
        return Action(Kind.HOLD, because="on demand would be late; what works is kept")
    if zone is not None and (not scarce or _can_pay(state, _steps_needed(state), state.saved_in, zone)):
        return Action(Kind.ON_DEMAND, zone, action.because)
    if scarce and (spot := next((each for each in cheap if not state.refused(each)), None)) is not None:
        return Action(Kind.SPOT, spot, "no zone has on-demand machines; whatever works is taken")
    return Action(Kind.WAIT, because="no zone has machines")


def _can_pay_step(state: State, zone: str) -> bool:
    """Whether a step on the spot market of a zone can be paid for."""
    if state.terms.budget_usd is None:
        return True
    usd = state.terms.fee_usd(state.saved_in, zone) + state.spot_price(zone) * state.terms.step_h
    return state.spent_usd + usd <= state.terms.budget_usd
