"""A lower bound on the cost of every policy: the least expected cost of a job for a policy that observes every zone.

A policy observes a zone only where it holds or tries a machine. The bounding policy observes all zones at every tick,
and how old their spells are, but not the future. It knows more than any real policy, so its least expected cost, which
is exact here, is a lower bound for all of them. The offline optimum is lower still: it knows the future.

The bound is computed for a special market: zones are alike, independent and cost the same. A zone is in one of several
phases, up or down, and changes its phase by a Markov chain, tick by tick. Later phases are calmer, so that a spell
which has lasted is likely to last. Since zones are alike, only the number of zones in each phase matters. A changeover
is one tick.

Symbols   k        how many zones are in each phase;   s   slack in ticks: those left, minus work left
          N, O     holding nothing, on demand;   H[a]   a spot machine of a zone in phase a, and k of the other zones
          V(t)     least expected cost from tick t on;   E   the mean over the next tick's phases

    free(k)  = min of  E N(t+1)(k, s-1),  on-demand price + E O(t+1)(k, s-1),
                       spot price + E H(t+1)[a](k - a, s-1) for a up, k_a > 0
    N = free(k);   O = min(free(k), on-demand price + E O(t+1)(k, s));
    H[a] = min(free(k + a), spot price + E H(t+1)[a](k, s)),  where a machine that is preempted before t+1 is N(t+1)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Phases = NDArray[np.intp]
WAIT, ON_DEMAND = 0, 1
MISSED_USD = 1e9
"""The cost of a missed deadline."""


@dataclass(frozen=True)
class ZoneModel:
    """A zone as a Markov chain of phases; those in which it is up come first."""

    transition: Array
    """The probability to be in each phase (column) a tick after each phase (row)."""
    up: int
    """How many of the phases are up."""

    def drawn(self, zones: int, ticks: int, rng: np.random.Generator) -> Phases:
        """A random sequence: the phase at each tick (row) of each zone, starting in the stationary distribution."""
        share = np.linalg.matrix_power(self.transition, 4_096)[0]
        at = rng.choice(len(self.transition), zones, p=share / share.sum())
        reached = self.transition.cumsum(axis=1)
        reached[:, -1] = 1.0
        phases = np.empty((ticks, zones), dtype=np.intp)
        for tick in range(ticks):
            phases[tick] = at
            at = (rng.random(zones)[:, None] > reached[at]).sum(axis=1)
        return phases


@dataclass(frozen=True)
class Job:
    """Times in ticks, prices in dollars a tick. The job starts with nothing held."""

    ticks: int
    work: int
    spot_usd: float
    on_demand_usd: float


class FullyObserved:
    """The best policy that observes all zones at every tick, for free."""

    def __init__(self, zone: ZoneModel, zones: int, job: Job) -> None:
        self._zone, self._job = zone, job
        self._all, self._others = _Counts(zone, zones), _Counts(zone, zones - 1)
        phases, slacks = len(zone.transition), job.ticks - job.work + 1
        self._with_one_more = np.array([[self._all.index(k, a) for k in self._others.counts] for a in range(phases)])
        ended = np.zeros((2, slacks, len(self._all.counts))), np.zeros((zone.up, slacks, len(self._others.counts)))
        self._means = [self._mean(*ended)]
        for t in range(job.ticks - 1, -1, -1):
            free, held = self._tick(t)
            self._means.append(self._mean(free, held))
        self._means.reverse()
        self._at_first = free[WAIT, -1]

    def expected(self, phases: Phases) -> float:
        """The expected cost of the job, starting from these phases of all zones."""
        return float(self._at_first[self._all.index_of(phases)])

    def _mean(self, free: Array, held: Array) -> tuple[Array, Array]:
        """E: of N and O by slack and k; of H[a] by a, slack and the other zones' k."""
        to, up = self._zone.transition, self._zone.up
        of_phase = [held[a] if a < up else free[WAIT][:, self._with_one_more[a]] for a in range(len(to))]
        moved = np.einsum("ab,bsk->ask", to[:up], np.stack(of_phase))
        return free @ self._all.transition.T, moved @ self._others.transition.T

    def _tick(self, t: int) -> tuple[Array, Array]:
        """N and O, and H, of a tick, from the means over the next one."""
        free, held = self._means[-1]
        none, kept, spot = np.empty_like(free[0]), np.empty_like(free[0]), np.empty_like(held)
        for s in range(len(none)):
            left = self._job.ticks - t - s
            if left <= 0:
                none[s] = kept[s] = spot[:, s] = 0.0
                continue
            none[s] = self._launching(free, held, s)
            kept[s] = np.minimum(none[s], self._job.on_demand_usd + (free[ON_DEMAND, s] if left > 1 else 0.0))
            for a in range(self._zone.up):
                hold = self._job.spot_usd + (held[a, s] if left > 1 else 0.0)
                spot[a, s] = np.minimum(none[s][self._with_one_more[a]], hold)
        return np.stack([none, kept]), spot

    def _launching(self, free: Array, held: Array, s: int) -> Array:
        """The least cost of waiting and of all launches, by k."""
        if s == 0:
            return np.full(free.shape[-1], MISSED_USD)
        least: Array = np.minimum(free[WAIT, s - 1], self._job.on_demand_usd + free[ON_DEMAND, s - 1])
        for a in range(self._zone.up):
            np.minimum.at(least, self._with_one_more[a], self._job.spot_usd + held[a, s - 1])
        return least

    def simulated(self, phases: Phases) -> float:
        """The cost of following this policy on a drawn sequence of phases."""
        slack, usd, zone, kind = self._job.ticks - self._job.work, 0.0, -1, WAIT
        for t, now in enumerate(phases):
            left = self._job.ticks - t - slack
            if left <= 0:
                break
            if zone >= 0 and now[zone] >= self._zone.up:
                zone, kind = -1, WAIT
            usd_now, slack, zone, kind = self._best(t, now, slack, left, zone, kind)
            usd += usd_now
        return usd

    def _best(self, t: int, now: Phases, slack: int, left: int, zone: int, kind: int) -> tuple[float, int, int, int]:
        """The price paid now, the slack after it, and the zone and kind held."""
        (free, held), job = self._means[t + 1], self._job
        k = self._all.index_of(now)
        options: list[tuple[float, tuple[float, int, int, int]]] = []
        if slack > 0:
            options.append((free[WAIT, slack - 1, k], (0.0, slack - 1, -1, WAIT)))
            options.append(
                (job.on_demand_usd + free[ON_DEMAND, slack - 1, k], (job.on_demand_usd, slack - 1, -1, ON_DEMAND))
            )
            for z in np.flatnonzero(now < self._zone.up):
                rest = held[now[z], slack - 1, self._others.index_of(np.delete(now, z))]
                options.append((job.spot_usd + rest, (job.spot_usd, slack - 1, int(z), WAIT)))
        if kind == ON_DEMAND:
            options.append(
                (
                    job.on_demand_usd + (free[ON_DEMAND, slack, k] if left > 1 else 0),
                    (job.on_demand_usd, slack, -1, kind),
                )
            )
        if zone >= 0:
            rest = held[now[zone], slack, self._others.index_of(np.delete(now, zone))] if left > 1 else 0.0
            options.append((job.spot_usd + rest, (job.spot_usd, slack, zone, WAIT)))
        return min(options)[1]


class _Counts:
    """All cases of how many zones are in each phase, and the transition probabilities between the cases."""

    def __init__(self, zone: ZoneModel, zones: int) -> None:
        phases = len(zone.transition)
        cases = combinations_with_replacement(range(phases), zones)
        self.counts = [tuple(case.count(a) for a in range(phases)) for case in cases]
        self._index = {counts: index for index, counts in enumerate(self.counts)}
        self.transition: Array = np.ones((1, 1))
        if zones:
            fewer = _Counts(zone, zones - 1)
            into = np.array([[self.index(k, b) for k in fewer.counts] for b in range(phases)])
            self.transition = np.zeros((len(self.counts),) * 2)
            for row, counts in enumerate(self.counts):
                a = next(phase for phase, count in enumerate(counts) if count)
                rest = fewer.transition[fewer.index(counts, a, -1)]
                for b in range(phases):
                    np.add.at(self.transition[row], into[b], zone.transition[a, b] * rest)

    def index(self, counts: tuple[int, ...], phase: int, more: int = 1) -> int:
        """The index of the case with one zone more, or less, in a phase."""
        changed = list(counts)
        changed[phase] += more
        return self._index[tuple(changed)]

    def index_of(self, phases: Phases) -> int:
        """The index of the case of these zones."""
        return self._index[tuple(np.bincount(phases, minlength=len(self.counts[0])).tolist())]
