"""Greedy: spot whenever it is to be had, else wait; on demand only when the deadline forces it.

'Greedy' of Wu et al., 'Can't Be Late: Optimizing Spot Instance Savings under Deadlines', NSDI 2024. That it goes on
demand at the last moment is the work of the guard around it (`guard.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.train.market.protocol import Action, Kind, State


@dataclass(frozen=True)
class Greedy:
    """Takes the cheapest spot machine that is to be had, and waits if there is none."""

    name: str = "greedy"

    def decide(self, state: State) -> Action:
        """Hold a machine if there is one; else try the zones by price."""
        if state.held is not None:
            return Action(Kind.HOLD)
        zone = next_untried(state)
        return Action(Kind.WAIT, because="no spot to be had") if zone is None else Action(Kind.SPOT, zone, "spot")


def next_untried(state: State) -> str | None:
    """The cheapest zone that was not tried in vain at this moment; None if all were."""
    open_zones = [zone for zone in state.terms.zones if not state.refused(zone)]
    return min(open_zones, key=state.spot_price, default=None)
