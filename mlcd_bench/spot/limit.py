"""What no policy can save: the least expected cost of a job for one who sees every zone, but not the future.

A policy sees a zone only where it holds or tries a machine. One that is shown all zones at every tick, and how old
their spells are, knows more; so its least expected cost, which is exact here, is a bound below that of every policy.
The offline optimum is below both: it knows what will happen.

The market is one in which this can be computed: zones are alike and independent, and cost the same. A zone is in one
of some phases, up or down, and moves on by a Markov chain, tick by tick. Later phases are calmer, so that a spell
which has lasted will last. Since zones are alike, only how many are in each phase matters. A changeover is one tick.

Symbols   k        how many zones are in each phase;   s   slack in ticks: those left, less work left
          N, O     holding nothing, on demand;   H[a]   a spot machine of a zone in phase a, and k of the other zones
          V(t)     least expected cost from tick t on;   E   the mean over the next tick's phases

    free(k)  = least of  E N(t+1)(k, s-1),  dear + E O(t+1)(k, s-1),  cheap + E H(t+1)[a](k - a, s-1) for a up, k_a > 0
    N = free(k);   O = min(free(k), dear + E O(t+1)(k, s));   H[a] = min(free(k + a), cheap + E H(t+1)[a](k, s)),
    where a machine that is lost on the way to t+1 is N(t+1)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Phases = NDArray[np.intp]
WAIT, ON_DEMAND = 0, 1
NEVER = 1e9
"""Dollars: the cost of a deadline that is missed."""


@dataclass(frozen=True)
class Phased:
    """A zone: its phases in order, first those in which it is up."""

    step: Array
    """The chance to be in each phase (column) a tick after each phase (row)."""
    up: int
    """How many of the phases are up."""

    def drawn(self, zones: int, ticks: int, rng: np.random.Generator) -> Phases:
        """The phase at each tick (row) of so many zones, from a moment long after the beginning."""
        share = np.linalg.matrix_power(self.step, 4_096)[0]
        at = rng.choice(len(self.step), zones, p=share / share.sum())
        reached = self.step.cumsum(axis=1)
        reached[:, -1] = 1.0
        found = np.empty((ticks, zones), dtype=np.intp)
        for tick in range(ticks):
            found[tick] = at
            at = (rng.random(zones)[:, None] > reached[at]).sum(axis=1)
        return found


@dataclass(frozen=True)
class Job:
    """In ticks and dollars a tick. It starts with nothing held."""

    ticks: int
    work: int
    cheap: float
    dear: float


class Seeing:
    """The best policy of one who sees all zones at every tick, for free."""

    def __init__(self, zone: Phased, zones: int, job: Job) -> None:
        self._zone, self._job = zone, job
        self._all, self._others = _Counts(zone, zones), _Counts(zone, zones - 1)
        phases, slacks = len(zone.step), job.ticks - job.work + 1
        self._with = np.array([[self._all.place(k, a) for k in self._others.counts] for a in range(phases)])
        ended = np.zeros((2, slacks, len(self._all.counts))), np.zeros((zone.up, slacks, len(self._others.counts)))
        self._means = [self._mean(*ended)]
        for t in range(job.ticks - 1, -1, -1):
            free, held = self._tick(t)
            self._means.append(self._mean(free, held))
        self._means.reverse()
        self._at_first = free[WAIT, -1]

    def expected(self, phases: Phases) -> float:
        """What the job costs from these phases of all zones on."""
        return float(self._at_first[self._all.place_of(phases)])

    def _mean(self, free: Array, held: Array) -> tuple[Array, Array]:
        """E: of N and O by slack and k; of H[a] by a, slack and the other zones' k."""
        to, up = self._zone.step, self._zone.up
        of_phase = [held[a] if a < up else free[WAIT][:, self._with[a]] for a in range(len(to))]
        moved = np.einsum("ab,bsk->ask", to[:up], np.stack(of_phase))
        return free @ self._all.to.T, moved @ self._others.to.T

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
            kept[s] = np.minimum(none[s], self._job.dear + (free[ON_DEMAND, s] if left > 1 else 0.0))
            for a in range(self._zone.up):
                hold = self._job.cheap + (held[a, s] if left > 1 else 0.0)
                spot[a, s] = np.minimum(none[s][self._with[a]], hold)
        return np.stack([none, kept]), spot

    def _launching(self, free: Array, held: Array, s: int) -> Array:
        """The least of waiting and of all launches, by k."""
        if s == 0:
            return np.full(free.shape[-1], NEVER)
        least: Array = np.minimum(free[WAIT, s - 1], self._job.dear + free[ON_DEMAND, s - 1])
        for a in range(self._zone.up):
            np.minimum.at(least, self._with[a], self._job.cheap + held[a, s - 1])
        return least

    def played(self, phases: Phases) -> float:
        """What it costs to play by this on drawn zones."""
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
        """What is paid now, the slack after it, and what is held."""
        (free, held), job = self._means[t + 1], self._job
        k = self._all.place_of(now)
        options: list[tuple[float, tuple[float, int, int, int]]] = []
        if slack > 0:
            options.append((free[WAIT, slack - 1, k], (0.0, slack - 1, -1, WAIT)))
            options.append((job.dear + free[ON_DEMAND, slack - 1, k], (job.dear, slack - 1, -1, ON_DEMAND)))
            for z in np.flatnonzero(now < self._zone.up):
                rest = held[now[z], slack - 1, self._others.place_of(np.delete(now, z))]
                options.append((job.cheap + rest, (job.cheap, slack - 1, int(z), WAIT)))
        if kind == ON_DEMAND:
            options.append((job.dear + (free[ON_DEMAND, slack, k] if left > 1 else 0), (job.dear, slack, -1, kind)))
        if zone >= 0:
            rest = held[now[zone], slack, self._others.place_of(np.delete(now, zone))] if left > 1 else 0.0
            options.append((job.cheap + rest, (job.cheap, slack, zone, WAIT)))
        return min(options)[1]


class _Counts:
    """How many of so many zones are in each phase: all cases, and their chances to follow each other."""

    def __init__(self, zone: Phased, zones: int) -> None:
        phases = len(zone.step)
        cases = combinations_with_replacement(range(phases), zones)
        self.counts = [tuple(case.count(a) for a in range(phases)) for case in cases]
        self._places = {counts: place for place, counts in enumerate(self.counts)}
        self.to: Array = np.ones((1, 1))
        if zones:
            fewer = _Counts(zone, zones - 1)
            into = np.array([[self.place(k, b) for k in fewer.counts] for b in range(phases)])
            self.to = np.zeros((len(self.counts),) * 2)
            for row, counts in enumerate(self.counts):
                a = next(phase for phase, count in enumerate(counts) if count)
                rest = fewer.to[fewer.place(counts, a, -1)]
                for b in range(phases):
                    np.add.at(self.to[row], into[b], zone.step[a, b] * rest)

    def place(self, counts: tuple[int, ...], phase: int, more: int = 1) -> int:
        """Of the case with one zone more, or less, in a phase."""
        changed = list(counts)
        changed[phase] += more
        return self._places[tuple(changed)]

    def place_of(self, phases: Phases) -> int:
        """Of the case that these zones are."""
        return self._places[tuple(np.bincount(phases, minlength=len(self.counts[0])).tolist())]
