"""Pace: as many zones as the pace needs, the cheapest first; slack is kept for changeovers before it is waited away.

Slack pays for changeovers first: without it nothing but on-demand is left until the end. So a job leaves on-demand only
with slack for the way there and back and a share of its work, and waits only with more than that.

Symbols   w, s     work left and slack, in hours;   c   changeover
          p_z      spot price of zone z;  l_z  mean life of a machine there;  u_z  how often it has some; both learned
          e_z      p_z (1 + c / min(l_z, w)): the price of an hour of work, with the changeover that it takes to get it

    zones     in the order of e_z, as long as that is below the price on demand (with the changeover to it, c / w, where
              nothing is held); of these the first n that are up together often enough, and those that are as cheap:
              1 - prod (1 - u_z)  >=  ENOUGH w / (w + s)
    wait      s > WAIT w + 2 c;   else every zone that is cheaper than on demand, then on demand
    leave     on demand:  s > LEAVE w + 2 c
              zone y:     the same, and (p_y - p_z) min(l_z, w) > 2 c p_z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.protocol import Action, Kind, State
from mlcd.planners.train.market.rates import Belief, Rates, learn

ENOUGH = 1.3
"""Joint availability over the pace: zones are down together more often than by chance."""
SURE = 0.97
"""More joint availability than this is not asked for."""
AS_CHEAP = 1.01
"""A zone at this price over another's costs nothing to ask, too."""
WAIT = 0.1
LEAVE = 0.05
MOVES = 2.0
"""Changeovers that slack is kept for: there and back."""


@dataclass(frozen=True)
class Pace:
    """Takes the cheapest zones that the pace needs, and keeps slack for changeovers."""

    name: str = "pace"
    belief: Belief = learn

    def decide(self, state: State) -> Action:
        """Try, keep, leave, wait, or go on demand."""
        may_leave = state.slack_h > LEAVE * state.work_left_h + MOVES * state.terms.changeover_h
        if state.held is not None and not may_leave:
            return Action(Kind.HOLD, because="slack is kept for changeovers")
        rates = self.belief(state.seen, state.terms.zones)
        price_of_work = np.array(state.spot_usd_h) * (1 + state.terms.changeover_h / _life_h(state, rates))
        below = _on_demand_usd_h(state)
        cheaper = [int(z) for z in np.argsort(price_of_work, kind="stable") if price_of_work[z] < below]
        if state.held is not None and state.held.is_spot:
            return self._move(state, rates, cheaper)
        needed = _needed(state, rates, cheaper)
        if (zone := _untried(state, needed)) is not None:
            return Action(Kind.SPOT, zone, f"{len(needed)} of {len(cheaper)} zones keep the pace; the cheapest first")
        may_wait = state.slack_h > WAIT * state.work_left_h + MOVES * state.terms.changeover_h
        if state.held is None and may_wait and cheaper:
            return Action(Kind.WAIT, because="there is time to wait for a cheap zone")
        if (zone := _untried(state, cheaper)) is not None:
            return Action(Kind.SPOT, zone, "cheaper than on demand")
        if state.held is not None:
            return Action(Kind.HOLD, because="no zone has spot machines")
        return Action(Kind.ON_DEMAND, state.terms.fallback_zone(state.saved_in), "slack is kept for changeovers")

    def _move(self, state: State, rates: Rates, cheaper: Sequence[int]) -> Action:
        """To a zone whose lower price pays for two changeovers while a machine lives there."""
        assert state.held is not None
        own, lives_h = state.spot_price(state.held.zone), _life_h(state, rates)
        for z in cheaper:
            zone, price = state.terms.zones[z], state.spot_usd_h[z]
            gain = (own - price) * lives_h[z] - MOVES * state.terms.changeover_h * price
            if zone != state.held.zone and not state.refused(zone) and gain > 0:
                return Action(Kind.SPOT, zone, f"${price:.2f} an hour in place of ${own:.2f}")
        return Action(Kind.HOLD)


def _on_demand_usd_h(state: State) -> float:
    """An hour of work on demand; where nothing is held, with the changeover that it takes, too."""
    changeover_h = state.terms.changeover_h if state.held is None else 0.0
    return min(state.terms.on_demand_usd_h) * (1 + changeover_h / max(state.work_left_h, state.terms.step_h))


def _life_h(state: State, rates: Rates) -> NDArray[np.float64]:
    """How long a machine of each zone would be used."""
    return np.minimum(rates.life_h, max(state.work_left_h, state.terms.step_h))


def _needed(state: State, rates: Rates, cheaper: Sequence[int]) -> list[int]:
    """The first of these zones that together are up often enough to keep the pace, and those that are as cheap."""
    wanted = min(SURE, ENOUGH * state.work_left_h / max(state.time_left_h, state.terms.step_h))
    needed, none_up = list[int](), 1.0
    for z in cheaper:
        if 1 - none_up >= wanted and state.spot_usd_h[z] > AS_CHEAP * state.spot_usd_h[needed[-1]]:
            break
        needed.append(z)
        none_up *= 1 - float(rates.share_up[z])
    return needed


def _untried(state: State, zones: Sequence[int]) -> str | None:
    """The first of these that was not just tried in vain."""
    return next((state.terms.zones[z] for z in zones if not state.refused(state.terms.zones[z])), None)
