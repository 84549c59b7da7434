"""The expected cost of the rest of a job, by time and work left (dynamic programming, backwards from the deadline).

The market is a Markov model with the probabilities of `availability.py`:

- A held machine is preempted with the probability of its zone, its age and the hour of the day.
- After a preemption the other zones are tried, the best first. Each is up with its probability at that hour.
- Zones that are better than the held one, and all zones while nothing or on-demand is held, are known to be down, and
  come back.
- While on-demand is held, the job may stop trying zones for some hours. A zone that is up after that has probably been
  up for a while, and lasts longer than one that has just come back.

Symbols   t, T     tick, and that of the deadline;   D   length of a tick
          x        work left, in ticks: time left is T - t, and slack T - t - x
          c        changeover: K - g ticks, i.e. K whole ticks, of which the last has a share g for work
          H[z, k]  holding a spot machine of zone z in age class k;   O  holding on-demand
          N        holding nothing, while all zones that the job would take are down
          S[z]     just preempted in zone z, the others not tried yet
          L[f, z]  launching in zone z, which came up a moment ago (f = 0) or some time ago (f = 1): if it is preempted
                   before c is over, half of c is paid and S follows; else H
          G        launching on demand
          trying   the cost after trying z and then the rest:  rest + probability_z min(L[z] - rest, 0)

    H(t)[z, k](x) = price D + preempted S(t+1)[z](x-1) + kept (trying better zones, G, or H)(t+1)(x-1)
    O(t)(x)       = min of  price D + (trying all zones, or O)(t+1)(x-1)  and, for some n > 1, of
                    n price D + (trying zones that were not tried for n ticks, or O)(t+n)(x-n)
    N(t)(x)       = min(G(t)(x), (trying all zones, or N)(t+1)(x))

As the guard requires, a spot machine is held only while a changeover to on-demand fits. Slack is reserved for
changeovers: held machines are given up only with slack above LEAVE_SLACK of the work left and two changeovers; waiting
requires WAIT_SLACK of it. Zones are sorted by price + cost of a changeover over the expected spell; the best is first.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.availability import HELD_AGES_H, availability, held_age_class
from mlcd.planners.train.market.hazard_rates import (
    ASSUMED_AGE_H,
    HazardRates,
    Hours,
    age_class_of,
    hour_of_day,
    spell_age_h,
)
from mlcd.planners.train.market.observations import Observations
from mlcd.planners.train.market.protocol import Terms

Array = NDArray[np.float64]

TICKS, TICKS_OF_FEW_ZONES = 144, 288
"""The least number of ticks from the start of a job to its deadline; more if a changeover would not be whole ticks.
With few zones a finer table costs little."""
FEW_ZONES = 2
WAIT_SLACK = 0.1
"""Slack for waiting, as a share of the work left, beyond the reserved changeovers."""
LEAVE_SLACK = 0.02
"""Slack for giving up held machines, as a share of the work left, beyond the reserved changeovers."""
RESERVED_CHANGEOVERS = 2.0
"""Changeovers that slack is reserved for: there and back."""
INFEASIBLE_H = 1e6
"""The cost of what the guard does not allow, in on-demand hours."""
FRESH, SETTLED = 0, 1
SETTLED_AFTER_H = 4.0
"""A zone that was last observed down so long ago, and is up now, has been up for some time."""
ON_DEMAND_HOLDS_H = (1.0, 2.0, 4.0)
"""For how long an on-demand machine may be kept without trying a spot zone."""


def may_leave(work_h: Hours, slack_h: Hours, changeover_h: float) -> NDArray[np.bool_]:
    """Whether there is enough slack to give up held machines for better ones."""
    return np.asarray(slack_h > LEAVE_SLACK * work_h + RESERVED_CHANGEOVERS * changeover_h)


def may_wait(work_h: Hours, slack_h: Hours, changeover_h: float) -> NDArray[np.bool_]:
    """Whether there is enough slack to hold nothing."""
    return np.asarray(slack_h > WAIT_SLACK * work_h + RESERVED_CHANGEOVERS * changeover_h)


class CostTable:
    """Expected costs in dollars of the rest of a job with at most `work_h` left, from `now_h` to the deadline."""

    def __init__(
        self,
        terms: Terms,
        spot_usd_h: tuple[float, ...],
        rates: HazardRates,
        observations: Observations,
        now_h: float,
        work_h: float,
    ):
        ticks = TICKS_OF_FEW_ZONES if len(terms.zones) <= FEW_ZONES else TICKS
        longest_h = max(terms.step_h, terms.deadline_h / ticks)
        c = self.changeover_h = terms.changeover_h
        self.tick_h = c / ceil(c / longest_h - 1e-6) if c > longest_h else longest_h
        self.ticks = ceil((terms.deadline_h - now_h) / self.tick_h - 1e-6) + 1
        self.from_h = terms.deadline_h - self.ticks * self.tick_h
        self._work = np.arange(ceil(work_h / self.tick_h - 1e-6) + 2)
        self._start_ticks = max(1, ceil(c / self.tick_h - 1e-6))
        self._work_at_start = self._start_ticks - c / self.tick_h
        self._rates, self._on_demand_usd_h = rates, min(terms.on_demand_usd_h)
        self.infeasible_usd = INFEASIBLE_H * self._on_demand_usd_h
        prices = np.array(spot_usd_h)
        spell_h = np.minimum(rates.mean_up_h, max(terms.deadline_h - now_h, self.tick_h))
        self.order = np.argsort(prices * (1 + c / spell_h), kind="stable")
        self.rank = np.argsort(self.order)
        self._prices = prices[self.order]
        fees = np.zeros((len(prices),) * 2) if terms.move_usd is None else np.array(terms.move_usd)
        self._fees = fees[np.ix_(self.order, self.order)]
        self._fee_from_anywhere = self._fees.mean(axis=0)
        ahead = availability(rates, observations, terms.zones, self.from_h, self.ticks + 1, self.tick_h)
        by_rank = (each[self.order] for each in (ahead.preempted, ahead.returned, ahead.up))
        self._preempted, self._returned, self._up = by_rank
        self._changes_per_h = (1 / rates.mean_up_h + 1 / rates.mean_down_h)[self.order]
        self._fill()

    def _fill(self) -> None:
        zones, ages, work = len(self._prices), len(HELD_AGES_H), len(self._work)
        rows = self.ticks + self._start_ticks + 1

        def empty(*shape: int) -> Array:
            made = np.full((rows, *shape, work), self.infeasible_usd)
            made[..., 0] = 0.0
            return made

        self.held, self.on_demand, self.waiting = empty(zones, ages), empty(), empty()
        self.launch, self.launch_on_demand, self._just_preempted = empty(2, zones), empty(), empty(zones)
        for t in range(self.ticks - 1, -1, -1):
            self._fill_held(t)
            self._fill_launches(t)
            self._fill_waiting(t)
            self._fill_just_preempted(t)

    def _fill_held(self, t: int) -> None:
        """H and O of a tick, from the tick after it."""
        spare = self.ticks - t - self._work
        leave = may_leave(self._work * self.tick_h, (spare - 1) * self.tick_h, self.changeover_h)
        held, on_demand = self.held[t + 1].copy(), self.on_demand[t + 1].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            probability, launch = self._returned[z, t + 1] * leave, self.launch[t + 1, FRESH, z]
            worse = held[z + 1 :]
            worse += probability * np.minimum(launch + self._fees[z + 1 :, z, None, None] - worse, 0.0)
            on_demand += probability * np.minimum(launch + self._fee_from_anywhere[z] - on_demand, 0.0)
        held = np.where(leave, np.minimum(held, self.launch_on_demand[t + 1]), held)
        older = np.append(np.minimum(1.0, self.tick_h / np.diff(HELD_AGES_H)), 0.0)[:, None]
        kept = held + older * (np.concatenate([held[:, 1:], held[:, -1:]], axis=1) - held)
        preempted = self._preempted[:, :, t, None]
        after = preempted * self._just_preempted[t + 1][:, None] + (1 - preempted) * kept
        self.held[t, ..., 1:] = self._prices[:, None, None] * self.tick_h + after[..., :-1]
        self.held[t][..., spare < self._start_ticks - self._work_at_start - 1e-9] = self.infeasible_usd
        self.on_demand[t, 1:] = self._on_demand_usd_h * self.tick_h + on_demand[:-1]
        self._hold_without_trying(t)
        self.on_demand[t, spare < 0] = self.infeasible_usd
        self.held[t, ..., 0] = self.on_demand[t, 0] = 0.0

    def _hold_without_trying(self, t: int) -> None:
        """O of a tick, if it costs less to try the zones only after some hours."""
        for hours in ON_DEMAND_HOLDS_H:
            n = round(hours / self.tick_h)
            if 0 < n <= self.ticks - t:
                later = self._on_demand_usd_h * self.tick_h * n + self._tried_after(n, t + n)[:-n]
                np.minimum(self.on_demand[t, n:], later, out=self.on_demand[t, n:])

    def _tried_after(self, n: int, t: int) -> Array:
        """O of a tick in which all zones are tried; n ticks before, all were down."""
        slack_h = (self.ticks - t - self._work) * self.tick_h
        leave = may_leave(self._work * self.tick_h, slack_h, self.changeover_h)
        settled = min(1.0, n * self.tick_h / SETTLED_AFTER_H)
        rest: Array = self.on_demand[t].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            launch = (1 - settled) * self.launch[t, FRESH, z] + settled * self.launch[t, SETTLED, z]
            up = self._up[z, t] * -np.expm1(-self._changes_per_h[z] * n * self.tick_h)
            rest += up * leave * np.minimum(launch + self._fee_from_anywhere[z] - rest, 0.0)
        return rest

    def _fill_launches(self, t: int) -> None:
        """L and G of a tick."""
        ticks, spare = self._start_ticks, self.ticks - t - self._work
        after, half = t + ticks, max(1, ticks // 2)
        start_usd = self._on_demand_usd_h * self.tick_h * ticks
        self.launch_on_demand[t] = start_usd + self._after_start(self.on_demand[after])
        for kind, age in ((FRESH, 0.0), (SETTLED, ASSUMED_AGE_H)):
            survives = np.ones(len(self._prices))
            for j in range(ticks):
                survives *= 1 - self._preempted[:, held_age_class(age + j * self.tick_h), min(t + j, self.ticks)]
            held = self.held[after][:, held_age_class(age + self.changeover_h)]
            good = self._prices[:, None] * self.tick_h * ticks + self._after_start(held)
            bad = self._prices[:, None] * self.tick_h * half + self._just_preempted[t + half]
            self.launch[t, kind] = survives[:, None] * good + (1 - survives[:, None]) * bad
        self.launch[t][..., spare < 2 * (ticks - self._work_at_start) - 1e-9] = self.infeasible_usd
        self.launch[t, ..., 0] = self._prices * self.changeover_h  # a launch has to start, even for little work
        self.launch_on_demand[t, 0] = self._on_demand_usd_h * self.changeover_h

    def _after_start(self, values: Array) -> Array:
        """The values after a start, whose last tick includes some work."""
        after = values.copy()
        after[..., 1:] += self._work_at_start * (values[..., :-1] - values[..., 1:])
        return after

    def _fill_waiting(self, t: int) -> None:
        """N of a tick, from the tick after it."""
        rest = self.waiting[t + 1].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            launch = self.launch[t + 1, FRESH, z] + self._fee_from_anywhere[z]
            rest += self._returned[z, t + 1] * np.minimum(launch - rest, 0.0)
        slack_h = (self.ticks - t - self._work) * self.tick_h
        wait = may_wait(self._work * self.tick_h, slack_h, self.changeover_h)
        self.waiting[t] = np.where(wait, np.minimum(rest, self.launch_on_demand[t]), self.launch_on_demand[t])
        self.waiting[t, 0] = 0.0

    def _fill_just_preempted(self, t: int) -> None:
        """S of a tick."""
        rest = np.tile(self.waiting[t], (len(self._prices), 1))
        for z in range(len(self._prices) - 1, -1, -1):
            tried = self._up[z, t] * np.minimum(self.launch[t, SETTLED, z] + self._fees[:, z, None] - rest, 0.0)
            tried[z] = 0.0
            rest += tried
        self._just_preempted[t] = rest
        self._just_preempted[t, :, 0] = 0.0

    def covers(self, work_h: float) -> bool:
        """Whether the table has so much work left."""
        return bool(work_h <= self._work[-1] * self.tick_h)

    def cost(self, values: Array, work_h: float, slack_h: float) -> Array:
        """The costs in one of the arrays, at this work left and slack."""
        costs: Array = self.costs(values, work_h, slack_h, 0)[0]
        return costs

    def costs(self, values: Array, work_h: float, slack_h: float, later: int) -> Array:
        """The same for the next `later` ticks, if slack falls by a tick each time. Interpolates between entries."""
        x = work_h / self.tick_h
        low = min(int(x), len(self._work) - 2)
        part = min(1.0, x - low)
        slack = np.maximum(0.0, slack_h / self.tick_h - np.arange(later + 1))
        whole = slack.astype(int)

        def at(slack: NDArray[np.intp]) -> Array:
            rows = np.maximum(self.ticks - slack - low, 0)
            below, above = values[rows, ..., low], values[np.maximum(rows - 1, 0), ..., low + 1]
            interpolated: Array = below + part * (above - below)
            return interpolated

        less, more = at(whole), at(whole + 1)
        share = (slack - whole).reshape(-1, *(1,) * (less.ndim - 1))
        return np.where(less < self.infeasible_usd / 2, less + share * (more - less), more)

    def waiting_usd(
        self,
        observations: Observations,
        zones: tuple[str, ...],
        fees: Array,
        now_h: float,
        work_h: float,
        slack_h: float,
    ) -> float:
        """The expected cost of waiting from now on, given how long each zone has been down. `fees`: of a launch, by
        zone."""
        later = int((slack_h - self.changeover_h) / self.tick_h)
        if later <= 0:
            return self.infeasible_usd
        launch = self.costs(self.launch[:, FRESH], work_h, slack_h, later) + fees[self.order]
        on_demand = self.costs(self.launch_on_demand, work_h, slack_h, later)
        returned = self._return_probabilities(observations, zones, now_h, later)
        cost = float(on_demand[-1])
        for tick in range(later - 1, -1, -1):
            for z in range(len(self.order) - 1, -1, -1):
                if launch[tick + 1, z] < cost:
                    cost += returned[z, tick + 1] * (launch[tick + 1, z] - cost)
            if tick:
                cost = min(cost, float(on_demand[tick]))
        return cost

    def _return_probabilities(
        self, observations: Observations, zones: tuple[str, ...], now_h: float, later: int
    ) -> Array:
        """The probability of each zone, in the table's order, to come back within each of the next ticks."""
        ahead_h = np.arange(later + 1) * self.tick_h
        first = max(0, round((now_h - self.from_h) / self.tick_h))
        returned = self._returned[:, np.minimum(first + np.arange(later + 1), self.ticks)]  # array index: a copy
        for rank, i in enumerate(self.order):
            last = observations.last_spell(zones[i])
            if last is not None and not last.up:
                per_h = self._rates.return_per_h[i, age_class_of(spell_age_h(last, now_h) + ahead_h)]
                per_tick = per_h * self._rates.return_by_hour[i, hour_of_day(now_h + ahead_h)] * self.tick_h
                returned[rank] = -np.expm1(-per_tick)
        return returned
