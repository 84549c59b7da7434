"""What the rest of a job costs, by time and work left, if zones behave as they are expected to (`availability.py`).

Filled backwards from the deadline. Between decisions the market is a Markov model:

- a held machine is lost with the chance of its zone, its age and the hour of the day;
- when it is lost, the other zones are asked, the best first, and are up with their chance at that hour;
- zones better than what is held, and all zones while nothing or on-demand is held, are known to be down, and come back;
- while on-demand is held no zone need be asked for some hours: what is up then has likely been so for a while, and
  lasts longer than what has just come back.

Symbols   t, T     tick, and that of the deadline;   D   length of a tick
          x        work left, in ticks: time left is T - t, and slack T - t - x
          c        changeover: K - g ticks, K whole ones of which the last has g of work
          H[z, k]  holding a spot machine of zone z in class of age k;   O  holding on-demand
          N        holding nothing, while all zones that one would take are down
          S[z]     just lost zone z, the others not asked yet
          L[f, z]  launching in zone z, which came up a moment ago (f = 0) or some time ago (f = 1): lost before c is
                   over: half of it is paid, goes on with S; else goes on with H
          G        launching on demand
          a try    the cost after asking z and then the rest:  rest + chance_z min(L[z] - rest, 0)

    H(t)[z, k](x) = price D + lost S(t+1)[z](x-1) + kept (tries of better zones, G, or H)(t+1)(x-1)
    O(t)(x)       = the least of  price D + (tries of all zones, or O)(t+1)(x-1)  and, for some n > 1, of
                    n price D + (tries of zones that were not asked for n ticks, or O)(t+n)(x-n)
    N(t)(x)       = min(G(t)(x), (tries of all zones, or N)(t+1)(x))

As the guard has it, a spot machine is held only while a changeover to on-demand fits. Slack is kept for changeovers:
what is held is left only with slack above LEAVE of the work left and two changeovers, and waiting takes WAIT of it.
Zones are in the order of price + changeover's cost over expected life; the best is first.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.availability import HELD_AGES_H, availability, held_class
from mlcd.planners.train.market.protocol import Terms
from mlcd.planners.train.market.rates import OLD_H, Hours, Rates, age_h, class_of, hour_of
from mlcd.planners.train.market.seen import Seen

Array = NDArray[np.float64]

TICKS, TICKS_OF_FEW_ZONES = 144, 288
"""From the start of a job to its deadline, at least; more where a changeover would be no whole number of them. With few
zones a finer table costs little."""
FEW_ZONES = 2
WAIT = 0.1
LEAVE = 0.02
MOVES = 2.0
"""Changeovers that slack is kept for: there and back."""
NEVER = 1e6
"""Hours on demand: the cost of what the guard does not allow."""
FRESH, SETTLED = 0, 1
SETTLED_AFTER_H = 4.0
"""A zone that was last seen down so long ago, and is up now, has been so for some time."""
PATIENCE_H = (1.0, 2.0, 4.0)
"""How long an on-demand machine may be kept without asking for a spot machine."""


def may_leave(work_h: Hours, slack_h: Hours, changeover_h: float) -> NDArray[np.bool_]:
    """Whether there is slack enough to give back what is held for something better."""
    return np.asarray(slack_h > LEAVE * work_h + MOVES * changeover_h)


def may_wait(work_h: Hours, slack_h: Hours, changeover_h: float) -> NDArray[np.bool_]:
    """Whether there is slack enough to hold nothing."""
    return np.asarray(slack_h > WAIT * work_h + MOVES * changeover_h)


class CostTable:
    """Costs of the rest of a job with at most `work_h` left, from `now_h` to the deadline."""

    def __init__(
        self, terms: Terms, spot_usd_h: tuple[float, ...], rates: Rates, seen: Seen, now_h: float, work_h: float
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
        self._rates, self._dear = rates, min(terms.on_demand_usd_h)
        self.never = NEVER * self._dear
        prices = np.array(spot_usd_h)
        life_h = np.minimum(rates.life_h, max(terms.deadline_h - now_h, self.tick_h))
        self.order = np.argsort(prices * (1 + c / life_h), kind="stable")
        self.place = np.argsort(self.order)
        self._prices = prices[self.order]
        fees = np.zeros((len(prices),) * 2) if terms.move_usd is None else np.array(terms.move_usd)
        self._fees = fees[np.ix_(self.order, self.order)]
        self._fee_from_anywhere = self._fees.mean(axis=0)
        ahead = availability(rates, seen, terms.zones, self.from_h, self.ticks + 1, self.tick_h)
        self._lost, self._back, self._up = (each[self.order] for each in (ahead.lost, ahead.back, ahead.up))
        self._changes_per_h = (1 / rates.life_h + 1 / rates.gap_h)[self.order]
        self._fill()

    def _fill(self) -> None:
        zones, ages, work = len(self._prices), len(HELD_AGES_H), len(self._work)
        rows = self.ticks + self._start_ticks + 1

        def empty(*shape: int) -> Array:
            made = np.full((rows, *shape, work), self.never)
            made[..., 0] = 0.0
            return made

        self.held, self.on_demand, self.nothing = empty(zones, ages), empty(), empty()
        self.launch, self.launch_on_demand, self._just_lost = empty(2, zones), empty(), empty(zones)
        for t in range(self.ticks - 1, -1, -1):
            self._hold(t)
            self._launch(t)
            self._wait(t)
            self._lose(t)

    def _hold(self, t: int) -> None:
        """H and O of a tick, from the tick after it."""
        spare = self.ticks - t - self._work
        leave = may_leave(self._work * self.tick_h, (spare - 1) * self.tick_h, self.changeover_h)
        held, on_demand = self.held[t + 1].copy(), self.on_demand[t + 1].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            chance, launch = self._back[z, t + 1] * leave, self.launch[t + 1, FRESH, z]
            worse = held[z + 1 :]
            worse += chance * np.minimum(launch + self._fees[z + 1 :, z, None, None] - worse, 0.0)
            on_demand += chance * np.minimum(launch + self._fee_from_anywhere[z] - on_demand, 0.0)
        held = np.where(leave, np.minimum(held, self.launch_on_demand[t + 1]), held)
        older = np.append(np.minimum(1.0, self.tick_h / np.diff(HELD_AGES_H)), 0.0)[:, None]
        kept = held + older * (np.concatenate([held[:, 1:], held[:, -1:]], axis=1) - held)
        lost = self._lost[:, :, t, None]
        after = lost * self._just_lost[t + 1][:, None] + (1 - lost) * kept
        self.held[t, ..., 1:] = self._prices[:, None, None] * self.tick_h + after[..., :-1]
        self.held[t][..., spare < self._start_ticks - self._work_at_start - 1e-9] = self.never
        self.on_demand[t, 1:] = self._dear * self.tick_h + on_demand[:-1]
        self._stay_without_asking(t)
        self.on_demand[t, spare < 0] = self.never
        self.held[t, ..., 0] = self.on_demand[t, 0] = 0.0

    def _stay_without_asking(self, t: int) -> None:
        """O of a tick, where it costs less to ask the zones only after some hours."""
        for hours in PATIENCE_H:
            n = round(hours / self.tick_h)
            if 0 < n <= self.ticks - t:
                later = self._dear * self.tick_h * n + self._asked_after(n, t + n)[:-n]
                np.minimum(self.on_demand[t, n:], later, out=self.on_demand[t, n:])

    def _asked_after(self, n: int, t: int) -> Array:
        """O of a tick in which all zones are asked; n ticks before all were down."""
        slack_h = (self.ticks - t - self._work) * self.tick_h
        leave = may_leave(self._work * self.tick_h, slack_h, self.changeover_h)
        settled = min(1.0, n * self.tick_h / SETTLED_AFTER_H)
        rest: Array = self.on_demand[t].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            launch = (1 - settled) * self.launch[t, FRESH, z] + settled * self.launch[t, SETTLED, z]
            up = self._up[z, t] * -np.expm1(-self._changes_per_h[z] * n * self.tick_h)
            rest += up * leave * np.minimum(launch + self._fee_from_anywhere[z] - rest, 0.0)
        return rest

    def _launch(self, t: int) -> None:
        """L and G of a tick."""
        ticks, spare = self._start_ticks, self.ticks - t - self._work
        after, half = t + ticks, max(1, ticks // 2)
        dear = self._dear * self.tick_h * ticks
        self.launch_on_demand[t] = dear + self._after_start(self.on_demand[after])
        for kind, age in ((FRESH, 0.0), (SETTLED, OLD_H)):
            starts = np.ones(len(self._prices))
            for j in range(ticks):
                starts *= 1 - self._lost[:, held_class(age + j * self.tick_h), min(t + j, self.ticks)]
            held = self.held[after][:, held_class(age + self.changeover_h)]
            good = self._prices[:, None] * self.tick_h * ticks + self._after_start(held)
            bad = self._prices[:, None] * self.tick_h * half + self._just_lost[t + half]
            self.launch[t, kind] = starts[:, None] * good + (1 - starts[:, None]) * bad
        self.launch[t][..., spare < 2 * (ticks - self._work_at_start) - 1e-9] = self.never
        self.launch[t, ..., 0] = self._prices * self.changeover_h  # for little work, too, a launch has to start
        self.launch_on_demand[t, 0] = self._dear * self.changeover_h

    def _after_start(self, values: Array) -> Array:
        """With the work that the last tick of a changeover has."""
        moved = values.copy()
        moved[..., 1:] += self._work_at_start * (values[..., :-1] - values[..., 1:])
        return moved

    def _wait(self, t: int) -> None:
        """N of a tick, from the tick after it."""
        rest = self.nothing[t + 1].copy()
        for z in range(len(self._prices) - 1, -1, -1):
            launch = self.launch[t + 1, FRESH, z] + self._fee_from_anywhere[z]
            rest += self._back[z, t + 1] * np.minimum(launch - rest, 0.0)
        slack_h = (self.ticks - t - self._work) * self.tick_h
        wait = may_wait(self._work * self.tick_h, slack_h, self.changeover_h)
        self.nothing[t] = np.where(wait, np.minimum(rest, self.launch_on_demand[t]), self.launch_on_demand[t])
        self.nothing[t, 0] = 0.0

    def _lose(self, t: int) -> None:
        """S of a tick."""
        rest = np.tile(self.nothing[t], (len(self._prices), 1))
        for z in range(len(self._prices) - 1, -1, -1):
            asked = self._up[z, t] * np.minimum(self.launch[t, SETTLED, z] + self._fees[:, z, None] - rest, 0.0)
            asked[z] = 0.0
            rest += asked
        self._just_lost[t] = rest
        self._just_lost[t, :, 0] = 0.0

    def holds(self, work_h: float) -> bool:
        """Whether so much work left is within the table."""
        return bool(work_h <= self._work[-1] * self.tick_h)

    def cost(self, values: Array, work_h: float, slack_h: float) -> Array:
        """Of one of the arrays, at so much work left and slack."""
        found: Array = self.costs(values, work_h, slack_h, 0)[0]
        return found

    def costs(self, values: Array, work_h: float, slack_h: float, later: int) -> Array:
        """The same with ever less slack, by a tick each time. Between the entries of the table it is interpolated."""
        x = work_h / self.tick_h
        low = min(int(x), len(self._work) - 2)
        part = min(1.0, x - low)
        slack = np.maximum(0.0, slack_h / self.tick_h - np.arange(later + 1))
        whole = slack.astype(int)

        def at(slack: NDArray[np.intp]) -> Array:
            rows = np.maximum(self.ticks - slack - low, 0)
            below, above = values[rows, ..., low], values[np.maximum(rows - 1, 0), ..., low + 1]
            found: Array = below + part * (above - below)
            return found

        less, more = at(whole), at(whole + 1)
        share = (slack - whole).reshape(-1, *(1,) * (less.ndim - 1))
        return np.where(less < self.never / 2, less + share * (more - less), more)

    def waiting_usd(
        self, seen: Seen, zones: tuple[str, ...], fees: Array, now_h: float, work_h: float, slack_h: float
    ) -> float:
        """What waiting from now on costs, with how long each zone has been down already. `fees`: of a launch there."""
        later = int((slack_h - self.changeover_h) / self.tick_h)
        if later <= 0:
            return self.never
        launch = self.costs(self.launch[:, FRESH], work_h, slack_h, later) + fees[self.order]
        go = self.costs(self.launch_on_demand, work_h, slack_h, later)
        back = self._back_after(seen, zones, now_h, later)
        cost = float(go[-1])
        for tick in range(later - 1, -1, -1):
            for z in range(len(self.order) - 1, -1, -1):
                if launch[tick + 1, z] < cost:
                    cost += back[z, tick + 1] * (launch[tick + 1, z] - cost)
            if tick:
                cost = min(cost, float(go[tick]))
        return cost

    def _back_after(self, seen: Seen, zones: tuple[str, ...], now_h: float, later: int) -> Array:
        """The chance of each zone, in the table's order, to come back within each of the next ticks."""
        ahead_h = np.arange(later + 1) * self.tick_h
        first = max(0, round((now_h - self.from_h) / self.tick_h))
        back = self._back[:, np.minimum(first + np.arange(later + 1), self.ticks)]  # a copy: the index is an array
        for place, i in enumerate(self.order):
            last = seen.last(zones[i])
            if last is not None and not last.up:
                per_h = self._rates.back_per_h[i, class_of(age_h(last, now_h) + ahead_h)]
                back[place] = -np.expm1(-per_h * self._rates.back_by_hour[i, hour_of(now_h + ahead_h)] * self.tick_h)
        return back
