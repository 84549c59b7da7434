"""The hard rule: whatever a policy wants, the job can still be finished on demand, on time and within the budget.

The rule is separate from every policy and wraps any of them. It needs on-demand machines that are to be had within the
changeover time; then no behaviour of the spot market leads to a missed deadline.

Symbols   d      the longest time between two decisions (`step_h`); machines are paid for in whole steps
          N      whole steps until the deadline
          w      work left; u, work that no checkpoint holds yet; k, the most that this can become (`checkpoint_h`)
          c      changeover: stop, start, restore, at the longest
          p_j    work done j steps after the action if nothing goes wrong: max(0, j d - changeover still to come)

An action other than on-demand is allowed if for every j = 1, 2, ... a loss after j steps leaves room for the fallback:

    ceil((w - p_j + min(u + p_j, k) + c) / d) <= N - j          and in money
    spent + action's price x j d + on-demand price x ceil((...) / d) d <= budget

Once p_j grows by d with each step and min() has reached k, the left side falls as fast as the right one: only the first
few j have to be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

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
        action = self.policy.decide(state)
        if action.kind is Kind.ON_DEMAND:
            return self._on_demand(state, action)
        if action.kind is Kind.SPOT and action.zone is not None and state.refused(action.zone):
            action = Action(Kind.HOLD, because=f"{action.zone} was tried a moment ago")
        if is_safe(state, action):
            return action
        if action.kind is Kind.SPOT and state.on_spot and is_safe(state, stay := Action(Kind.HOLD, because=STAYS)):
            return stay
        zone = state.terms.fallback_zone(state.saved_in)
        return self._on_demand(state, Action(Kind.ON_DEMAND, zone, "on demand from here on just fits"))

    def _on_demand(self, state: State, action: Action) -> Action:
        """A second launch on demand would take another changeover, and a dear zone may pass the budget: neither."""
        if state.on_demand:
            return Action(Kind.HOLD, because=action.because)
        if state.terms.budget_usd is None and action.zone is not None:
            return action
        return Action(Kind.ON_DEMAND, state.terms.fallback_zone(state.saved_in), action.because)


def is_safe(state: State, action: Action) -> bool:
    """Whether the fallback fits at every moment after this action, at the worst."""
    if action.kind is not Kind.HOLD:  # what no checkpoint holds may go with the machines that are given back
        state = replace(state, work_left_h=state.work_left_h + state.unsaved_h, unsaved_h=0.0)
    held = _after(state, action)
    if held is not None and not held.is_spot:
        return True
    usd_h, fee = _price(state, action, held)
    changeover = held.changeover_left_h if held is not None else 0.0
    terms = state.terms
    steps = 1 if held is None else ceil((changeover + terms.checkpoint_h) / terms.step_h) + 1
    return all(_fits(state, held, changeover, usd_h, fee, j) for j in range(1, steps + 1))


def fits_now(state: State) -> bool:
    """Whether on-demand, taken at this moment, would finish the job in time and within the budget."""
    return _fits(state, None, 0.0, 0.0, 0.0, 0)


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
    terms, d = state.terms, state.terms.step_h
    done = max(0.0, j * d - changeover_h) if held is not None else 0.0
    if state.work_left_h - done <= ROUNDING * d:  # the job has ended before the loss
        needed = 0
    else:
        unsaved = min(state.unsaved_h + done, terms.checkpoint_h) if held is not None else 0.0
        needed = ceil((state.work_left_h - done + unsaved + terms.changeover_h) / d - ROUNDING)
    if needed > 0 and needed > steps_left(state) - j:
        return False
    if terms.budget_usd is None:
        return True
    origin = held.zone if held is not None else state.saved_in
    zone = terms.fallback_zone(origin)
    fallback_usd = needed * d * terms.on_demand_price(zone) + (terms.fee_usd(origin, zone) if needed else 0.0)
    return state.spent_usd + fee_usd + usd_h * j * d + fallback_usd <= terms.budget_usd * (1 + 1e-12)
