"""Our policy: the action whose cost-to-go is least, by rates of loss and return that are learned as the job runs.

What each action leads to is in the table (`table.py`), which is computed from the learned rates (`rates.py`) every
few hours. Waiting is looked at more closely, since it is what spends slack: zones that have been down for long come
back late, so the value of waiting now is computed from how long each has been down.

- A try in vain is free, so the best zone is tried first, and only zones that would be taken.
- A machine is left for a better zone, or for on-demand, when that pays: changeover, fee and its own risk counted.
- Waiting lasts as long as slack is worth less than what it saves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.guard import is_safe, steps_left
from mlcd.planners.train.market.protocol import Action, Kind, State, Terms
from mlcd.planners.train.market.rates import Rates, age_h, cumulated, learn
from mlcd.planners.train.market.seen import JOIN_H, Seen
from mlcd_bench.spot.table import Market, Table, class_of, wait_or_go

Array = NDArray[np.float64]

LEARN_EVERY_H = 6.0
"""How often the rates are learned anew, besides at every loss: quiet hours change little."""

WAIT_ABOVE = 0.1
"""Waiting only with slack of more than this share of the work left. The rates are means; bad times come in clusters,
and then slack is needed for changeovers, without which there is nothing but on-demand until the end."""


@dataclass
class _Kept:
    """The last table and what it was computed from: nothing that could not be computed again."""

    of: tuple[Terms, tuple[float, ...], Seen] | None = None
    table: Table | None = None


@dataclass(frozen=True)
class CostToGo:
    """Takes, keeps, leaves or waits for machines so that the expected cost of the whole job is least."""

    name: str = "cost-to-go"
    _kept: _Kept = field(default_factory=_Kept, repr=False, compare=False)

    def decide(self, state: State) -> Action:
        """The best zone that is worth trying; else on demand, if that is better than going on as it is."""
        table = self._table(state)
        stay, staying = self._stay(state, table)
        target = state.terms.fallback_zone(state.saved_in)
        dear = np.inf
        if not state.on_demand:
            dear = float(table.value(table.launch_dear, state.work_left_h, _slack(state)))
            dear += state.terms.fee_usd(state.saved_in, target)
        best = self._best_zone(state, table, min(stay, dear))
        if best is not None:
            return best
        if dear < stay or not is_safe(state, staying):
            return Action(Kind.ON_DEMAND, target, f"on demand: ${dear:.2f} to the end, else ${stay:.2f}")
        return staying

    def _table(self, state: State) -> Table:
        terms = state.terms
        quiet_h = floor(state.now_h / LEARN_EVERY_H + 1e-9) * LEARN_EVERY_H
        until_h = max(quiet_h, state.seen.last_loss_h())
        of = (terms, state.spot_usd_h, state.seen.until(until_h))
        if self._kept.table is None or self._kept.of != of:
            market = Market(
                state.spot_usd_h,
                terms.on_demand_price(terms.fallback_zone(None)),
                terms.changeover_h,
                terms.step_h,
                learn(of[2], terms.zones),
                np.zeros((len(terms.zones),) * 2) if terms.move_usd is None else np.array(terms.move_usd),
            )
            self._kept.table = Table(market, terms.work_h, max(0.0, terms.deadline_h - terms.work_h))
            self._kept.of = of
        return self._kept.table

    def _stay(self, state: State, table: Table) -> tuple[float, Action]:
        """What it costs to go on as it is."""
        held, work_h, slack_h = state.held, state.work_left_h, _slack(state)
        if held is None and slack_h < WAIT_ABOVE * work_h:
            return np.inf, Action(Kind.WAIT)
        if held is None:
            return self._wait(state, table), Action(Kind.WAIT, because="waiting costs less than what is to be had")
        rest = held.changeover_left_h
        if not held.is_spot:
            usd_h = state.terms.on_demand_price(held.zone)
            return usd_h * rest + float(table.value(table.dear, work_h, slack_h - rest)), Action(Kind.HOLD)
        z = int(table.place[state.terms.zones.index(held.zone)])
        last = state.seen.last(held.zone)
        k = class_of(age_h(last, state.now_h)) if last is not None else 0
        stays = float(table.value(table.held[:, z, k], work_h, slack_h - rest))
        return state.spot_price(held.zone) * rest + stays, Action(Kind.HOLD)

    def _best_zone(self, state: State, table: Table, than: float) -> Action | None:
        """A try of the best zone, if a machine there would be taken."""
        terms = state.terms
        costs = table.value(table.launch, state.work_left_h, _slack(state))
        best, action = than, None
        for i, zone in enumerate(terms.zones):
            if state.refused(zone) or (state.on_spot and state.held is not None and state.held.zone == zone):
                continue
            cost = float(costs[0 if _is_fresh(state, zone) else 1, table.place[i]])
            cost += terms.fee_usd(state.saved_in, zone)
            if cost < best:
                words = f"{zone}: ${cost:.2f} to the end, else ${than:.2f}"
                candidate = Action(Kind.SPOT, zone, words)
                if is_safe(state, candidate):
                    best, action = cost, candidate
        return action

    def _wait(self, state: State, table: Table) -> float:
        """The value of waiting, with how long each zone has been down already."""
        terms, slack_h = state.terms, _slack(state)
        row, up = table.rows_at(state.work_left_h)
        launch = (1 - up) * table.launch[row, 0] + up * table.launch[row + 1, 0]
        launch = launch + np.array([terms.fee_usd(state.saved_in, terms.zones[i]) for i in table.order])[:, None]
        go = (1 - up) * table.launch_dear[row] + up * table.launch_dear[row + 1]
        levels = table.slacks
        top = int(np.searchsorted(levels, max(slack_h, 0.0), side="right"))
        slacks = np.append(levels[:top], slack_h) if slack_h > levels[top - 1] + 1e-9 else levels[:top]
        launch = np.array([np.interp(slacks, levels, line) for line in launch])
        go = np.interp(slacks, levels, go)
        middle = np.concatenate([launch[:, :1], (launch[:, 1:] + launch[:, :-1]) / 2], axis=1)
        chances = _chances(state, table, slacks)
        return wait_or_go(go.tolist(), middle.T.tolist(), chances.T.tolist())[-1]


def _slack(state: State) -> float:
    """Slack in whole steps: a part of a step before the deadline is of no use."""
    return steps_left(state) * state.terms.step_h - state.work_left_h


def _is_fresh(state: State, zone: str) -> bool:
    """Whether the zone, if it is up now, has come up a moment ago: it was down a little before."""
    last = state.seen.last(zone)
    if last is None:
        return False
    if last.up:
        return state.now_h - last.to_h <= JOIN_H and last.sharp and last.hours < JOIN_H
    return state.now_h - last.to_h <= JOIN_H


def _chances(state: State, table: Table, slacks: Array) -> Array:
    """For each zone (as in the table) and step from a slack to the next lower one: that it comes back in that time."""
    rates: Rates = table.market.rates
    waited = np.append(slacks[-1] - slacks, 0.0)  # how long one has waited at a slack; the last is no step
    chances = np.zeros((len(table.order), len(slacks)))
    for place, i in enumerate(table.order):
        last = state.seen.last(state.terms.zones[i])
        if last is None or last.up:
            hours = np.diff(slacks, prepend=slacks[0])
            chances[place] = -np.expm1(-hours / rates.gap_h[i])
            continue
        passed = cumulated(rates.back_per_h[i], age_h(last, state.now_h) + waited)
        chances[place, 1:] = -np.expm1(-(passed[:-2] - passed[1:-1]))
    return chances
