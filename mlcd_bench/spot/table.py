"""The cost-to-go: what the rest of a job costs, by work left and slack, if the learned rates are right.

Every hour spends either work (on a machine) or slack (waiting, or a changeover), so the table is filled once, from no
work left upwards. Between decisions the market is a Markov model:

- a zone whose machine is held is lost at the rate of its class of age;
- zones that are worse than what is held are not tried; when it is lost they are found up with their long-run share;
- zones that are better, and all zones while nothing or on-demand is held, are known to be down: each comes back at
  1 / its mean gap.

Symbols   w, s           work left (rows of the table, in steps of `step_h`) and slack (`slacks`, finer near zero)
          c              changeover
          H[z, k]        cost-to-go holding a spot machine of zone z in class of age k
          D, N           holding on-demand; holding nothing (and all zones that one would take are down)
          X[z]           just lost zone z, the others not tried yet
          L[z]           launching in zone z, which came up a moment ago (fresh) or at an unknown time (settled):
                         lost before c is over: pays half of it, goes on with X; else pays c, goes on with H at s - c
          a try          V after trying z and then the rest:  (1 - up_z) rest + up_z min(L[z], rest)

    H[z, k](w, s) = price h + lost X[z](w - h, s) + kept (tries of better zones, or H of the next class)(w - h, s)
    D(w, s)       = price h + (tries of all zones, or D)(w - h, s)
    N(w, s)       = min(launch on demand, (tries of all zones, or N)(w, s - wait))

The guard keeps a changeover (in whole ticks) as a reserve: with less slack nothing but on-demand is held, and N is
on-demand. What would end after the deadline costs LATE times the on-demand price for each hour.
Zones are in the order of price + changeover's cost over expected life; the best is first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market.rates import OLD_H, Rates, cumulated, mean_length_after

Array = NDArray[np.float64]

ROW_H = 0.75
"""Hours of work in a row."""
LEAST_ROWS = 16
FINEST = 0.5
"""Distance of the smallest slacks, in changeovers."""
GROWTH = 0.2
"""Distance of the others, as a share of the slack."""
LATE = 1000.0
CAUTION = 1.0
"""Losses are taken to come so many times as often as learned, and returns as many times as seldom."""
CLASS_H = np.array([0.0, 1.0, 4.0])
"""Where the table's classes of age begin: fewer than those of the rates, since each multiplies its size."""
CLASSES = len(CLASS_H)


@dataclass(frozen=True)
class Market:
    """What the table depends on besides the job's size. Zones in any order."""

    spot_usd_h: tuple[float, ...]
    on_demand_usd_h: float
    changeover_h: float
    tick_h: float
    rates: Rates
    fees_usd: Array
    """From zone (row) to zone (column)."""


def slack_levels(most_h: float, changeover_h: float, tick_h: float) -> Array:
    """From zero to a little above the most: equal steps first, then growing ones."""
    finest = max(FINEST * changeover_h, tick_h / 2, 1e-3)
    levels = [0.0]
    while levels[-1] < most_h + finest:
        levels.append(levels[-1] + max(finest, GROWTH * levels[-1]))
    return np.array(levels)


class Table:
    """Costs-to-go of a job of `work_h`, with at most `slack_h`."""

    def __init__(self, market: Market, work_h: float, slack_h: float) -> None:
        self.market = market
        p, c = np.array(market.spot_usd_h), market.changeover_h
        self.order = np.argsort(p * (1 + c / market.rates.life_h), kind="stable")
        self.place = np.argsort(self.order)
        self.p = p[self.order]
        self.fees = market.fees_usd[np.ix_(self.order, self.order)]
        self.slacks = slack_levels(slack_h, c, market.tick_h)
        self.reserve_h = ceil(c / market.tick_h - 1e-6) * market.tick_h
        self.rows = max(LEAST_ROWS, ceil(work_h / ROW_H))
        self.step_h = work_h / self.rows
        self._rates(market.rates)
        self._fill()

    def _rates(self, rates: Rates) -> None:
        """Chances within a step of work and within a step of slack."""
        h, c = self.step_h, self.market.changeover_h
        loss = CAUTION * rates.loss_per_h[self.order]
        passed = cumulated(loss[:, None, :], CLASS_H)
        widths = np.diff(CLASS_H)
        per_h = np.column_stack([np.diff(passed) / widths, 1 / mean_length_after(loss, float(CLASS_H[-1]))])
        self.lost = -np.expm1(-per_h * h)[:, :, None]
        self.older = np.append(np.minimum(1.0, h / widths), 0.0)[:, None]
        ages = np.array([0.0, OLD_H])
        gone = cumulated(loss[:, None, :], ages + c) - cumulated(loss[:, None, :], ages)
        self.fails = -np.expm1(-gone)  # zones x (fresh, settled)
        self.after = [class_of(c), class_of(OLD_H + c)]
        life, gap = rates.life_h[self.order] / CAUTION, rates.gap_h[self.order] * CAUTION
        self.share = life / (life + gap)
        back = 1 / rates.gap_h[self.order] / CAUTION
        self.back_h = -np.expm1(-back * h)
        self.back_s = -np.expm1(-back[:, None] * np.diff(self.slacks, prepend=0.0))
        self.mean_fee = self.fees.mean(axis=0)

    def _at_slack(self, less_h: float) -> tuple[NDArray[np.intp], Array, Array]:
        """Where a slack that is smaller by so much lies: the level below, the share of the level above, the penalty."""
        wanted = self.slacks - less_h
        late = LATE * self.market.on_demand_usd_h * np.maximum(0.0, -wanted)
        wanted = np.maximum(wanted, 0.0)
        low = np.clip(np.searchsorted(self.slacks, wanted, side="right") - 1, 0, len(self.slacks) - 2)
        part = (wanted - self.slacks[low]) / (self.slacks[low + 1] - self.slacks[low])
        return low, part, late

    def _fill(self) -> None:
        zones, levels, rows = len(self.p), len(self.slacks), self.rows
        c, dear = self.market.changeover_h, self.market.on_demand_usd_h
        self.held = np.zeros((rows + 1, zones, CLASSES, levels))
        self.dear = np.zeros((rows + 1, levels))
        self.none = np.zeros((rows + 1, levels))
        self.launch = np.zeros((rows + 1, 2, zones, levels))
        self.launch_dear = np.zeros((rows + 1, levels))
        lost = np.zeros((zones, levels))
        whole, half = self._at_slack(c), self._at_slack(c / 2)
        for row in range(1, rows + 1):
            self.held[row], self.dear[row] = self._working(row, lost)
            self.launch_dear[row] = dear * c + _moved(self.dear[row], whole)
            self.held[row][..., self.slacks < self.reserve_h - 1e-9] = LATE * dear  # the guard does not let it happen
            # What a failed launch leads to needs this row's own X: the last row's, with what a row costs added.
            before = max(row - 2, 0)
            guess = lost + (self.none[row - 1] - self.none[before])
            for kind in (0, 1):
                good = self.p[:, None] * c + _moved(self.held[row][:, self.after[kind]], whole)
                bad = self.p[:, None] * c / 2 + _moved(guess, half)
                fails = self.fails[:, kind, None]
                self.launch[row, kind] = (1 - fails) * good + fails * bad
            self.none[row] = self._waiting(row)
            lost = self._just_lost(row)

    def _working(self, row: int, lost: Array) -> tuple[Array, Array]:
        """H and D of a row, from the row before it."""
        h, fresh = self.step_h, self.launch[row - 1, 0]
        held, dear = self.held[row - 1].copy(), self.dear[row - 1].copy()
        for z in range(len(self.p) - 1, -1, -1):
            if row > 1:
                up = self.back_h[z]
                target = fresh[z]
                worse = held[z + 1 :]
                fee = self.fees[z + 1 :, z, None, None]
                worse += up * np.minimum(target + fee - worse, 0.0)
                dear += up * np.minimum(target + self.mean_fee[z] - dear, 0.0)
        aged = np.concatenate([held[:, 1:], held[:, -1:]], axis=1)
        kept = held + self.older * (aged - held)
        now = self.p[:, None, None] * h + self.lost * lost[:, None, :] + (1 - self.lost) * kept
        return now, self.market.on_demand_usd_h * h + dear

    def _waiting(self, row: int) -> Array:
        """N of a row, slack by slack."""
        fresh = self.launch[row, 0] + self.mean_fee[:, None]
        middle = np.empty_like(fresh)
        middle[:, 0], middle[:, 1:] = fresh[:, 0], (fresh[:, 1:] + fresh[:, :-1]) / 2
        return np.array(wait_or_go(self.launch_dear[row].tolist(), middle.T.tolist(), self.back_s.T.tolist()))

    def _just_lost(self, row: int) -> Array:
        """X of a row: the zones worse than the lost one are tried, the best first."""
        settled = self.launch[row, 1]
        rest = np.tile(np.minimum(self.none[row], self.launch_dear[row]), (len(self.p), 1))
        for z in range(len(self.p) - 1, 0, -1):
            better = rest[:z]
            better += self.share[z] * np.minimum(settled[z] + self.fees[:z, z, None] - better, 0.0)
        return rest

    def rows_at(self, work_h: float) -> tuple[int, float]:
        """The row below an amount of work, and the share of the row above."""
        exact = min(max(work_h / self.step_h, 0.0), float(self.rows))
        low = min(int(exact), self.rows - 1)
        return low, exact - low

    def value(self, values: Array, work_h: float, slack_h: float) -> Array:
        """Of an array whose first axis is the row and whose last is the slack, with the penalty for lateness."""
        row, up = self.rows_at(work_h)
        slack = min(max(slack_h, 0.0), float(self.slacks[-1]))
        low = min(int(np.searchsorted(self.slacks, slack, side="right")) - 1, len(self.slacks) - 2)
        part = (slack - self.slacks[low]) / (self.slacks[low + 1] - self.slacks[low])
        pair = (1 - up) * values[row, ..., low : low + 2] + up * values[row + 1, ..., low : low + 2]
        found: Array = pair[..., 0] + part * (pair[..., 1] - pair[..., 0])
        return found + LATE * self.market.on_demand_usd_h * max(0.0, -slack_h)


def class_of(age_h: float) -> int:
    """The table's class of an age."""
    return int(np.searchsorted(CLASS_H, age_h + 1e-9, side="right")) - 1


def _moved(values: Array, where: tuple[NDArray[np.intp], Array, Array]) -> Array:
    low, part, late = where
    below = values[..., low]
    moved: Array = below + part * (values[..., low + 1] - below) + late
    return moved


def wait_or_go(go: list[float], take: list[list[float]], up: list[list[float]]) -> list[float]:
    """The least cost at each slack of waiting for a zone or going on demand.

    `go`: on demand now; `take`: a launch while waiting from this slack to the next lower one, and `up`: the chance of
    it, both by zone, the best zone first.
    """
    found = [go[0]]
    for now, launches, chances in zip(go[1:], take[1:], up[1:], strict=True):
        rest = found[-1]
        for launch, chance in zip(reversed(launches), reversed(chances), strict=True):
            if launch < rest:
                rest += chance * (launch - rest)
        found.append(min(now, rest))
    return found
