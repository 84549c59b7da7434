"""Uniform Progress: keep up with a straight line of progress from the start to the deadline.

Wu et al., 'Can't Be Late: Optimizing Spot Instance Savings under Deadlines', NSDI 2024, section 4; over several zones
like the baseline of 'SkyNomad' (NSDI 2027): any zone that has a machine, here the cheapest first.

Symbols   C(0), C(t)   work at the start, work left at time t
          R(0)         time from the start to the deadline
          d            changeover

    behind   C(0) - C(t) < t C(0) / R(0)                  without spot machines go on demand; otherwise wait
    ahead    C(0) - C(t) > (t + 2 d) C(0) / R(0)          leave on-demand machines only then (hysteresis)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.train.market.greedy import cheapest_untried
from mlcd.planners.train.market.protocol import Action, Kind, State


@dataclass(frozen=True)
class UniformProgress:
    """Spot when available; otherwise on demand when behind the line, and waiting when ahead of it."""

    only_zone: str | None = None
    """The one zone that it uses; None: all zones."""

    @property
    def name(self) -> str:
        """The variant with one zone has a name of its own."""
        return "uniform-progress-single" if self.only_zone is not None else "uniform-progress"

    def decide(self, state: State) -> Action:
        """Compare the progress so far with the line."""
        if state.on_spot:
            return Action(Kind.HOLD)
        zone = self._zone(state)
        if state.on_demand and not is_ahead_of_line(state):
            return Action(Kind.HOLD, because="not far enough ahead of the line to leave on-demand machines")
        if zone is not None:
            return Action(Kind.SPOT, zone, "spot first")
        if is_behind_line(state) or state.on_demand:
            where = self.only_zone or state.terms.fallback_zone(state.checkpoint_zone)
            return Action(Kind.HOLD) if state.on_demand else Action(Kind.ON_DEMAND, where, "behind the line")
        return Action(Kind.WAIT, because="ahead of the line")

    def _zone(self, state: State) -> str | None:
        if self.only_zone is None:
            return cheapest_untried(state)
        return None if state.was_refused(self.only_zone) else self.only_zone


def is_behind_line(state: State) -> bool:
    """Whether less work is done than the line requires."""
    terms = state.terms
    return terms.work_h - state.work_left_h < state.now_h * terms.work_h / terms.deadline_h - 1e-9


def is_ahead_of_line(state: State) -> bool:
    """Whether the job would still be on the line after two changeovers."""
    terms = state.terms
    return terms.work_h - state.work_left_h > (state.now_h + 2 * terms.changeover_h) * terms.work_h / terms.deadline_h
