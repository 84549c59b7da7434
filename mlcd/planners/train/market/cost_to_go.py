"""Cost-to-go: the action that minimizes the expected cost of the whole rest of the job.

The expected costs are in a table (`cost_table.py`), recomputed from the observations every `LEARN_EVERY_H` and when
prices change. The present state is modelled in more detail than the table's states:

- A failed launch attempt is free, so the best zone is tried first, and only zones that would be taken are tried.
- How long a zone was down, or not observed, determines how old its machines would be, and when it comes back.
- Held machines are given up only to save at least `MIN_SAVING`, and with slack reserved for changeovers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, inf

import numpy as np

from mlcd.core.units import format_usd
from mlcd.planners.train.market.availability import held_age_class
from mlcd.planners.train.market.cost_table import FRESH, SETTLED, SETTLED_AFTER_H, Array, CostTable, may_leave, may_wait
from mlcd.planners.train.market.guard import is_safe
from mlcd.planners.train.market.hazard_rates import RateEstimator, learn_rates, spell_age_h
from mlcd.planners.train.market.observations import MAX_GAP_H
from mlcd.planners.train.market.protocol import Action, HeldMachines, Kind, State

LEARN_EVERY_H = 2.0
MIN_SAVING = 0.01
"""As a share of the cost of staying."""


@dataclass
class _TableCache:
    """The latest table and what it was computed from."""

    key: object = None
    table: CostTable | None = None


@dataclass(frozen=True)
class CostToGo:
    """Takes, keeps, gives up or waits for machines so that the expected cost of the rest of the job is least."""

    name: str = "cost-to-go"
    estimator: RateEstimator = learn_rates
    _cache: _TableCache = field(default_factory=_TableCache, repr=False, compare=False)

    def decide(self, state: State) -> Action:
        """Try the best zone if it is worth it; else go on demand if that costs less than staying."""
        work_h, slack_h, terms = state.work_left_h, _slack_h(state), state.terms
        stay = Action(Kind.WAIT if state.held is None else Kind.HOLD)
        if state.held is not None and not may_leave(work_h, slack_h, terms.changeover_h):
            return Action(Kind.HOLD, because="slack is kept for changeovers")
        table = self._table(state)
        stay_usd = self._stay_usd(state, table)
        on_demand_zone, on_demand_usd = terms.fallback_zone(state.checkpoint_zone), inf
        if not state.on_demand:
            on_demand_usd = float(table.cost(table.launch_on_demand, work_h, slack_h))
            on_demand_usd += terms.fee_usd(state.checkpoint_zone, on_demand_zone)
        worth_it = 1 - MIN_SAVING if state.held is not None else 1.0
        best = self._best_zone(state, table, worth_it * min(stay_usd, on_demand_usd))
        if best is not None:
            return best
        if on_demand_usd < worth_it * stay_usd or not is_safe(state, stay):
            return Action(Kind.ON_DEMAND, on_demand_zone, _reason(on_demand_usd, stay_usd, table))
        return Action(stay.kind, because=f"{_reason(stay_usd, inf, table)}; nothing available costs less")

    def _table(self, state: State) -> CostTable:
        """The table from the observations up to the last multiple of `LEARN_EVERY_H`."""
        terms, cache = state.terms, self._cache
        known_h = floor(state.now_h / LEARN_EVERY_H + 1e-9) * LEARN_EVERY_H
        key = terms, state.spot_usd_h, known_h
        if cache.table is None or cache.key != key or not cache.table.covers(state.work_left_h):
            # Slightly before that time: observations at the time itself are added from decision to decision.
            observations = state.observations.until(known_h - 1e-6)
            work_h = state.work_left_h + state.unsaved_h + terms.checkpoint_h
            rates = self.estimator(observations, terms.zones)
            cache.table = CostTable(terms, state.spot_usd_h, rates, observations, known_h, work_h)
            cache.key = key
        return cache.table

    def _stay_usd(self, state: State, table: CostTable) -> float:
        """The expected cost of keeping what is held, or of waiting if nothing is."""
        held, work_h, slack_h = state.held, state.work_left_h, _slack_h(state)
        if held is None:
            if not may_wait(work_h, slack_h, state.terms.changeover_h):
                return inf
            fees = np.array([state.terms.fee_usd(state.checkpoint_zone, zone) for zone in state.terms.zones])
            return table.waiting_usd(state.observations, state.terms.zones, fees, state.now_h, work_h, slack_h)
        starting_h = held.changeover_left_h
        if not held.is_spot:
            usd_h, rest = state.terms.on_demand_price(held.zone), table.on_demand
        else:
            usd_h, rest = state.spot_price(held.zone), self._held_costs(state, held, table)
        return usd_h * starting_h + float(table.cost(rest, work_h, slack_h - starting_h))

    def _held_costs(self, state: State, held: HeldMachines, table: CostTable) -> Array:
        """The table's costs of holding this spot machine."""
        last = state.observations.last_spell(held.zone)
        age_h = spell_age_h(last, state.now_h) if last is not None else 0.0
        return table.held[:, table.rank[state.terms.zones.index(held.zone)], held_age_class(age_h)]

    def _best_zone(self, state: State, table: CostTable, limit_usd: float) -> Action | None:
        """A launch in the zone with the least expected cost, if that is below the limit."""
        costs = table.cost(table.launch, state.work_left_h, _slack_h(state))
        best_usd, best = limit_usd, None
        for i, zone in enumerate(state.terms.zones):
            if state.was_refused(zone) or (state.held is not None and state.held.is_spot and state.held.zone == zone):
                continue
            settled, rank = _settled(state, zone), table.rank[i]
            usd = float((1 - settled) * costs[FRESH, rank] + settled * costs[SETTLED, rank])
            usd += state.terms.fee_usd(state.checkpoint_zone, zone)
            action = Action(Kind.SPOT, zone, _reason(usd, limit_usd, table))
            if usd < best_usd and is_safe(state, action):
                best_usd, best = usd, action
        return best


def _slack_h(state: State) -> float:
    """Slack, minus the time reserved for a wait for on-demand machines."""
    return state.slack_h - state.terms.fallback_wait_h


def _settled(state: State, zone: str) -> float:
    """How likely the zone, if it is up now, has been up for some time: from 0 to 1."""
    last = state.observations.last_spell(zone)
    if last is None or (last.up and last.hours > MAX_GAP_H):
        return 1.0
    return min(1.0, (state.now_h - last.to_h) / SETTLED_AFTER_H)


def _reason(usd: float, other_usd: float, table: CostTable) -> str:
    """The expected cost of the rest of the job, and of the alternative if there is one."""
    otherwise = f", else {format_usd(other_usd)}" if other_usd < table.infeasible_usd / 2 else ""
    return f"{format_usd(usd)} to the end{otherwise}"
