"""On demand from start to end: the baseline that every policy is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.train.market.protocol import Action, Kind, State


@dataclass(frozen=True)
class OnDemandOnly:
    """Takes an on-demand machine in the cheapest zone, and keeps it."""

    name: str = "on-demand"

    def decide(self, state: State) -> Action:
        """Take it, or keep it."""
        if state.on_demand:
            return Action(Kind.HOLD)
        return Action(Kind.ON_DEMAND, state.terms.fallback_zone(state.checkpoint_zone), "on demand only")
