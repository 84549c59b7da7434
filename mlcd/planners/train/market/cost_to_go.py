"""Cost-to-go: the action after which the whole rest of the job is expected to cost least.

What each action leads to is in a table (`cost_table.py`), which is computed anew every `LEARN_EVERY_H` from what was
seen until then, and when prices change. Today's state is looked at more closely than the table's:

- A try in vain is free, so the best zone is asked first, and only zones that would be taken.
- How long a zone was down, or was not looked at, says how old its machines would be, and when it comes back.
- What is held is left for something better by `WORTH_MOVING` at least, and with slack kept for changeovers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, inf

import numpy as np

from mlcd.core.units import format_usd
from mlcd.planners.train.market.availability import held_class
from mlcd.planners.train.market.cost_table import FRESH, SETTLED, SETTLED_AFTER_H, Array, CostTable, may_leave, may_wait
from mlcd.planners.train.market.guard import is_safe
from mlcd.planners.train.market.protocol import Action, Held, Kind, State
from mlcd.planners.train.market.rates import Belief, age_h, learn
from mlcd.planners.train.market.seen import JOIN_H

LEARN_EVERY_H = 2.0
WORTH_MOVING = 0.01
"""Of the cost of staying."""


@dataclass
class _Kept:
    """The last table and what it was computed from: nothing that could not be computed again."""

    of: object = None
    table: CostTable | None = None


@dataclass(frozen=True)
class CostToGo:
    """Takes, keeps, leaves or waits for machines so that the expected cost of the whole job is least."""

    name: str = "cost-to-go"
    belief: Belief = learn
    _kept: _Kept = field(default_factory=_Kept, repr=False, compare=False)

    def decide(self, state: State) -> Action:
        """The best zone that is worth asking; else on demand, if that is better than going on as it is."""
        work_h, slack_h, terms = state.work_left_h, _slack_h(state), state.terms
        stays = Action(Kind.WAIT if state.held is None else Kind.HOLD)
        if state.held is not None and not may_leave(work_h, slack_h, terms.changeover_h):
            return Action(Kind.HOLD, because="slack is kept for changeovers")
        table = self._table(state)
        staying = self._staying_usd(state, table)
        target, on_demand = terms.fallback_zone(state.saved_in), inf
        if not state.on_demand:
            on_demand = float(table.cost(table.launch_on_demand, work_h, slack_h))
            on_demand += terms.fee_usd(state.saved_in, target)
        enough = 1 - WORTH_MOVING if state.held is not None else 1.0
        best = self._best_zone(state, table, enough * min(staying, on_demand))
        if best is not None:
            return best
        if on_demand < enough * staying or not is_safe(state, stays):
            return Action(Kind.ON_DEMAND, target, _words(on_demand, staying, table))
        return Action(stays.kind, because=f"{_words(staying, inf, table)}; nothing to be had costs less")

    def _table(self, state: State) -> CostTable:
        """Of what was known at the last time of learning."""
        terms, kept = state.terms, self._kept
        known_h = floor(state.now_h / LEARN_EVERY_H + 1e-9) * LEARN_EVERY_H
        of = terms, state.spot_usd_h, known_h
        if kept.table is None or kept.of != of or not kept.table.holds(state.work_left_h):
            # Just before that time: at the time itself more is seen from one decision to the next.
            seen, work_h = state.seen.until(known_h - 1e-6), state.work_left_h + state.unsaved_h + terms.checkpoint_h
            kept.table = CostTable(terms, state.spot_usd_h, self.belief(seen, terms.zones), seen, known_h, work_h)
            kept.of = of
        return kept.table

    def _staying_usd(self, state: State, table: CostTable) -> float:
        """What it costs to go on as it is."""
        held, work_h, slack_h = state.held, state.work_left_h, _slack_h(state)
        if held is None:
            if not may_wait(work_h, slack_h, state.terms.changeover_h):
                return inf
            fees = np.array([state.terms.fee_usd(state.saved_in, zone) for zone in state.terms.zones])
            return table.waiting_usd(state.seen, state.terms.zones, fees, state.now_h, work_h, slack_h)
        starting_h = held.changeover_left_h
        if not held.is_spot:
            usd_h, rest = state.terms.on_demand_price(held.zone), table.on_demand
        else:
            usd_h, rest = state.spot_price(held.zone), self._of_held(state, held, table)
        return usd_h * starting_h + float(table.cost(rest, work_h, slack_h - starting_h))

    def _of_held(self, state: State, held: Held, table: CostTable) -> Array:
        """The costs of holding this spot machine."""
        last = state.seen.last(held.zone)
        age = age_h(last, state.now_h) if last is not None else 0.0
        return table.held[:, table.place[state.terms.zones.index(held.zone)], held_class(age)]

    def _best_zone(self, state: State, table: CostTable, than: float) -> Action | None:
        """The zone that costs least, if that is less than this; it is asked for a machine."""
        costs = table.cost(table.launch, state.work_left_h, _slack_h(state))
        best, found = than, None
        for i, zone in enumerate(state.terms.zones):
            if state.refused(zone) or (state.held is not None and state.held.is_spot and state.held.zone == zone):
                continue
            settled, place = _settled(state, zone), table.place[i]
            cost = float((1 - settled) * costs[FRESH, place] + settled * costs[SETTLED, place])
            cost += state.terms.fee_usd(state.saved_in, zone)
            action = Action(Kind.SPOT, zone, _words(cost, than, table))
            if cost < best and is_safe(state, action):
                best, found = cost, action
        return found


def _slack_h(state: State) -> float:
    """Slack, without the time that is kept for on-demand machines that may be missing."""
    return state.slack_h - state.terms.fallback_wait_h


def _settled(state: State, zone: str) -> float:
    """How sure it is that the zone, if it is up now, did not come up a moment ago: from 0 to 1."""
    last = state.seen.last(zone)
    if last is None or (last.up and last.hours > JOIN_H):
        return 1.0
    return min(1.0, (state.now_h - last.to_h) / SETTLED_AFTER_H)


def _words(usd: float, other_usd: float, table: CostTable) -> str:
    """What the rest of the job is expected to cost, and what it would cost otherwise, if that is possible at all."""
    otherwise = f", else {format_usd(other_usd)}" if other_usd < table.never / 2 else ""
    return f"{format_usd(usd)} to the end{otherwise}"
