"""Uniform Progress: be as far as a straight line from the start to the deadline, at every moment.

Wu et al., 'Can't Be Late: Optimizing Spot Instance Savings under Deadlines', NSDI 2024, section 4; over several zones
as the baseline of 'SkyNomad' (NSDI 2027) does it: whichever zone has a machine, here the cheapest first.

Symbols   C(0), C(t)   work at the start, work left at time t
          R(0)         time from the start to the deadline
          d            changeover

    behind   C(0) - C(t) < t C(0) / R(0)                  no spot: go on demand; else wait for it
    ahead    C(0) - C(t) > (t + 2 d) C(0) / R(0)          on demand: only then try spot again (hysteresis)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.train.market.greedy import next_untried
from mlcd.planners.train.market.protocol import Action, Kind, State


@dataclass(frozen=True)
class UniformProgress:
    """Spot when it is to be had; without it, on demand when behind the line and waiting when ahead of it."""

    home: str | None = None
    """The one zone that it keeps to; None: any of them."""

    @property
    def name(self) -> str:
        """Both forms have one."""
        return "uniform-progress-single" if self.home is not None else "uniform-progress"

    def decide(self, state: State) -> Action:
        """By progress so far against the line."""
        if state.on_spot:
            return Action(Kind.HOLD)
        zone = self._zone(state)
        if state.on_demand and not is_ahead(state):
            return Action(Kind.HOLD, because="not far enough ahead of the line to leave on-demand")
        if zone is not None:
            return Action(Kind.SPOT, zone, "spot first")
        if is_behind(state) or state.on_demand:
            where = self.home or state.terms.fallback_zone(state.saved_in)
            return Action(Kind.HOLD) if state.on_demand else Action(Kind.ON_DEMAND, where, "behind the line")
        return Action(Kind.WAIT, because="ahead of the line")

    def _zone(self, state: State) -> str | None:
        if self.home is None:
            return next_untried(state)
        return None if state.refused(self.home) else self.home


def is_behind(state: State) -> bool:
    """Whether less is done than the line asks for."""
    terms = state.terms
    return terms.work_h - state.work_left_h < state.now_h * terms.work_h / terms.deadline_h - 1e-9


def is_ahead(state: State) -> bool:
    """Whether two changeovers would not bring the job behind the line."""
    terms = state.terms
    return terms.work_h - state.work_left_h > (state.now_h + 2 * terms.changeover_h) * terms.work_h / terms.deadline_h
