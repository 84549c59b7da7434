"""Leaving machines for others that may not be to be had.

By the protocol what is held is given back only once the other machines are to be had. A cloud does not tell that before
it is asked, and a run holds machines in one place at a time: a try in vain costs a changeover. So a zone that had none
is not asked again before it is likely enough to have some.

Symbols   q, p     price of what is held, and of the zone;   c   changeover
          h        rate at which the zone gets machines again, at the age of its time without them, as learned
          T        time between two looks: a try in vain costs c q, and not knowing costs (q - p) / 2 an hour

    T  =  sqrt(2 c q / (h (q - p))),  where tries and not knowing cost the least together
"""

from __future__ import annotations

from math import sqrt

from mlcd.planners.train.market.protocol import Action, Kind, State
from mlcd.planners.train.market.rates import age_h, class_of, learn


def careful(state: State, action: Action) -> Action:
    """The action; but what is held is given back only for a zone that is likely enough to have machines."""
    if state.held is None or action.kind is not Kind.SPOT or action.zone is None or is_worth_a_try(state, action.zone):
        return action
    return Action(Kind.HOLD, because=f"{action.zone} may have no machines yet")


def is_worth_a_try(state: State, zone: str) -> bool:
    """Whether to give back what is held, and ask that zone."""
    held, last = state.held, state.seen.last(zone)
    if held is None or last is None or last.up:
        return True
    own = state.spot_price(held.zone) if held.is_spot else state.terms.on_demand_price(held.zone)
    gain_per_h = own - state.spot_price(zone)
    if gain_per_h <= 0:
        return False
    z, rates = state.terms.zones.index(zone), learn(state.seen, state.terms.zones)
    age = class_of(age_h(last, state.now_h))
    pause_h = sqrt(2 * state.terms.changeover_h * own / (float(rates.back_per_h[z, age]) * gain_per_h))
    return state.now_h - last.to_h >= pause_h
