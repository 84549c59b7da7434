"""Greedy: spot whenever it is available, else wait.

'Greedy' of Wu et al., 'Can't Be Late: Optimizing Spot Instance Savings under Deadlines', NSDI 2024. The guard around it
(`guard.py`) moves it on demand at the last moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.train.market.protocol import Action, Kind, State


@dataclass(frozen=True)
class Greedy:
    """Takes the cheapest available spot machine, and waits if there is none."""

    name: str = "greedy"

    def decide(self, state: State) -> Action:
        """Keep a held machine; else try the zones by price."""
        if state.held is not None:
            return Action(Kind.HOLD)
        zone = cheapest_untried(state)
        return Action(Kind.WAIT, because="no spot available") if zone is None else Action(Kind.SPOT, zone, "spot")


def cheapest_untried(state: State) -> str | None:
    """The cheapest zone in which no launch has just failed; None if one failed in every zone."""
    open_zones = [zone for zone in state.terms.zones if not state.was_refused(zone)]
    return min(open_zones, key=state.spot_price, default=None)
