"""Pace: uses as many zones as the deadline requires, the cheapest first, and reserves slack for changeovers.

Slack pays for changeovers before it is used for waiting: without slack for them a job must stay on demand until the
end. So a job leaves on-demand machines only with slack for the way there and back and a share of its work, and waits
only with more than that.

Symbols   w, s     work left and slack, in hours;   c   changeover
          p_z      spot price of zone z;  l_z  mean up spell there;  u_z  share of the time that it is up; both learned
          e_z      p_z (1 + c / min(l_z, w)): the price of an hour of work, including the changeovers

    zones     in the order of e_z, if below the on-demand price (including its changeover, c / w, if nothing is held);
              of these the first n that together are up often enough, and those at the same price:
              1 - prod (1 - u_z)  >=  UP_MARGIN w / (w + s)
    wait      s > WAIT_SLACK w + 2 c;   else every zone that is cheaper than on demand, then on demand
    leave     on demand:  s > LEAVE_SLACK w + 2 c
              zone y:     the same, and (p_y - p_z) min(l_z, w) > 2 c p_z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.hazard_rates import HazardRates, RateEstimator, learn_rates
from mlcd.planners.train.market.protocol import Action, Kind, State

UP_MARGIN = 1.3
"""Required joint availability over the share of time needed: zones are down together more often than by chance."""
MAX_UP = 0.97
"""The most joint availability that is required."""
SAME_PRICE = 1.01
"""Zones whose prices differ by less than this factor are tried together."""
WAIT_SLACK = 0.1
LEAVE_SLACK = 0.05
RESERVED_CHANGEOVERS = 2.0
"""Changeovers that slack is reserved for: there and back."""


@dataclass(frozen=True)
class Pace:
    """Takes the cheapest zones that the deadline requires, and reserves slack for changeovers."""

    name: str = "pace"
    estimator: RateEstimator = learn_rates

    def decide(self, state: State) -> Action:
        """Try a zone, keep, leave, wait, or go on demand."""
        may_leave = state.slack_h > LEAVE_SLACK * state.work_left_h + RESERVED_CHANGEOVERS * state.terms.changeover_h
        if state.held is not None and not may_leave:
            return Action(Kind.HOLD, because="slack is kept for changeovers")
        rates = self.estimator(state.observations, state.terms.zones)
        price_of_work = np.array(state.spot_usd_h) * (1 + state.terms.changeover_h / _expected_use_h(state, rates))
        below = _on_demand_usd_h(state)
        cheaper = [int(z) for z in np.argsort(price_of_work, kind="stable") if price_of_work[z] < below]
        if state.held is not None and state.held.is_spot:
            return self._move(state, rates, cheaper)
        required = _required_zones(state, rates, cheaper)
        if (zone := _first_untried(state, required)) is not None:
            because = f"{len(required)} of {len(cheaper)} zones are enough for the deadline; the cheapest first"
            return Action(Kind.SPOT, zone, because)
        may_wait = state.slack_h > WAIT_SLACK * state.work_left_h + RESERVED_CHANGEOVERS * state.terms.changeover_h
        if state.held is None and may_wait and cheaper:
            return Action(Kind.WAIT, because="there is time to wait for a cheap zone")
        if (zone := _first_untried(state, cheaper)) is not None:
            return Action(Kind.SPOT, zone, "cheaper than on demand")
        if state.held is not None:
            return Action(Kind.HOLD, because="no zone has spot machines")
        return Action(Kind.ON_DEMAND, state.terms.fallback_zone(state.checkpoint_zone), "slack is kept for changeovers")

    def _move(self, state: State, rates: HazardRates, cheaper: Sequence[int]) -> Action:
        """Move to a zone if its lower price is expected to pay for two changeovers."""
        assert state.held is not None
        held_usd_h, use_h = state.spot_price(state.held.zone), _expected_use_h(state, rates)
        for z in cheaper:
            zone, price = state.terms.zones[z], state.spot_usd_h[z]
            gain = (held_usd_h - price) * use_h[z] - RESERVED_CHANGEOVERS * state.terms.changeover_h * price
            if zone != state.held.zone and not state.was_refused(zone) and gain > 0:
                return Action(Kind.SPOT, zone, f"${price:.2f} an hour instead of ${held_usd_h:.2f}")
        return Action(Kind.HOLD)


def _on_demand_usd_h(state: State) -> float:
    """The price of an hour of work on demand, including the changeover to it if nothing is held."""
    changeover_h = state.terms.changeover_h if state.held is None else 0.0
    return min(state.terms.on_demand_usd_h) * (1 + changeover_h / max(state.work_left_h, state.terms.step_h))


def _expected_use_h(state: State, rates: HazardRates) -> NDArray[np.float64]:
    """How long a machine of each zone would be used."""
    return np.minimum(rates.mean_up_h, max(state.work_left_h, state.terms.step_h))


def _required_zones(state: State, rates: HazardRates, cheaper: Sequence[int]) -> list[int]:
    """The first of these zones that together are up often enough for the deadline, and those at the same price."""
    wanted = min(MAX_UP, UP_MARGIN * state.work_left_h / max(state.time_left_h, state.terms.step_h))
    required, none_up = list[int](), 1.0
    for z in cheaper:
        if 1 - none_up >= wanted and state.spot_usd_h[z] > SAME_PRICE * state.spot_usd_h[required[-1]]:
            break
        required.append(z)
        none_up *= 1 - float(rates.share_up[z])
    return required


def _first_untried(state: State, zones: Sequence[int]) -> str | None:
    """The first of these zones in which no launch has just failed."""
    return next((state.terms.zones[z] for z in zones if not state.was_refused(state.terms.zones[z])), None)
