"""When to give up held machines to try a zone that may have none.

In the protocol of the policies, held machines are given up only once the new ones are available. A real cloud does not
tell before it is asked, and a run holds machines in one place at a time. So a failed launch attempt costs a changeover,
and a zone that had no machines is tried again only when it is likely enough to have some.

Symbols   q, p     price of the held machines, and of the zone;   c   changeover
          h        hazard rate at which the zone's machines return, at the age of its down spell, as learned
          T        time between two attempts: a failed one costs c q, and not knowing costs (q - p) / 2 an hour

    T  =  sqrt(2 c q / (h (q - p))),  which minimizes the sum of both costs
"""

from __future__ import annotations

from math import sqrt

from mlcd.planners.train.market.hazard_rates import age_class_of, learn_rates, spell_age_h
from mlcd.planners.train.market.protocol import Action, Kind, State


def avoid_risky_switch(state: State, action: Action) -> Action:
    """The action; but hold if it would give up machines for a zone that is not likely enough to have some."""
    is_switch = state.held is not None and action.kind is Kind.SPOT
    if not is_switch or action.zone is None or is_worth_trying(state, action.zone):
        return action
    return Action(Kind.HOLD, because=f"{action.zone} may have no machines yet")


def is_worth_trying(state: State, zone: str) -> bool:
    """Whether to give up the held machines and try this zone."""
    held, last = state.held, state.observations.last_spell(zone)
    if held is None or last is None or last.up:
        return True
    held_usd_h = state.spot_price(held.zone) if held.is_spot else state.terms.on_demand_price(held.zone)
    gain_per_h = held_usd_h - state.spot_price(zone)
    if gain_per_h <= 0:
        return False
    z, rates = state.terms.zones.index(zone), learn_rates(state.observations, state.terms.zones)
    return_per_h = float(rates.return_per_h[z, age_class_of(spell_age_h(last, state.now_h))])
    pause_h = sqrt(2 * state.terms.changeover_h * held_usd_h / (return_per_h * gain_per_h))
    return state.now_h - last.to_h >= pause_h
