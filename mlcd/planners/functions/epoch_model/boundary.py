"""The Pareto boundary of (seconds, dollars) of one epoch over all allocations, exactly.

Wu et al. (CE-scaling, IPDPS 2023), section III-B3. The whole space (128 to 10,240 MB by 1, 1 to 3,000 functions, four
storages: 121 million) is too large to evaluate, so this is a branch and bound. A block is all memories between m0 and
m1 of one n and one storage. t' falls in m, so nothing in a block is faster than t'(m1) in the fewest waves, and nothing
is cheaper than

    fixed_usd + p_min t'(m1) + p_f ( m0 n fixed_s + D min m u(m) )       over the memories of the block

A block whose ideal corner is dominated by a known allocation has no point of the boundary. The other blocks are divided
level by level, down to single allocations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.functions.epoch_model.epoch import EpochModel, Ints, Rows
from mlcd.planners.functions.nouns import Allocation, FunctionsTask

WIDTHS = (512, 64, 8, 1)
"""Memories in a block, level by level: each a divisor of the one before."""
ROUNDING = 1 - 1e-12
"""A bound is summed in another order than what it bounds, and must not exceed it by a rounding error."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """The Pareto-optimal allocations: seconds rise, dollars fall, both strictly.

    `storage`: indices into `names`. `cold_s`, `cold_usd`: of an epoch whose functions were not called ahead.
    `plain`: the same boundary at the model's pace, which has the same corners.
    """

    functions: Ints
    memory_mb: Ints
    storage: Ints
    names: tuple[str, ...]
    seconds: Floats
    usd: Floats
    cold_s: Floats
    cold_usd: Floats
    plain: Boundary | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def corners(self) -> Ints:
        """Indices of the corners of the lower convex hull, seconds rising."""
        return self.plain.corners if self.plain is not None else hull(self.seconds, self.usd)

    def allocation(self, i: int) -> Allocation:
        """The i-th fastest."""
        return Allocation(int(self.functions[i]), int(self.memory_mb[i]), self.names[self.storage[i]])

    def place(self, where: Allocation) -> int | None:
        """The index of an allocation; None if it is not on the boundary."""
        same = np.flatnonzero((self.functions == where.functions) & (self.memory_mb == where.memory_mb))
        return next((i for i in same.tolist() if self.allocation(i) == where), None)

    def only(self, kept: NDArray[np.bool_]) -> Boundary:
        """A boundary of these allocations only."""
        columns = ("functions", "memory_mb", "storage", "seconds", "usd", "cold_s", "cold_usd")
        some: dict[str, Any] = {name: getattr(self, name)[kept] for name in columns}
        return replace(self, **some, plain=None)

    def paced(self, slower: float, dearer: float) -> Boundary:
        """The boundary with all seconds and dollars multiplied by these factors."""
        seconds, cold_s = self.seconds * slower, self.cold_s * slower
        usd, cold_usd = self.usd * dearer, self.cold_usd * dearer
        return replace(self, seconds=seconds, usd=usd, cold_s=cold_s, cold_usd=cold_usd, plain=self)


def hull(values: Floats, weights: Floats) -> Ints:
    """Indices of the corners of the lower convex hull of points with rising value and falling weight.

    A point on or above the line between its two neighbours is no corner: drop all such points, and repeat.
    """
    at: Ints = np.arange(len(values))
    at = at[np.append(True, weights[1:] < weights[:-1])]  # of equal weights the least value comes first
    at = at[np.append(values[at][1:] > values[at][:-1], True)]  # of equal values the least weight comes last
    while len(at) > 2:
        v, w = values[at], weights[at]
        dv, dw = np.diff(v), -np.diff(w)
        corner = np.concatenate([[True], dw[:-1] * dv[1:] > dw[1:] * dv[:-1], [True]])
        if corner.all():
            break
        at = at[corner]
    return at


def boundary(
    model: EpochModel, limits: FunctionsTask, *, trials: int = 1, step_mb: int = 1, called_ahead: bool = False
) -> Boundary:
    """The Pareto boundary of one epoch of so many trials: seconds of all of them, dollars of one.

    Trials that cannot all run at once run in waves. Of equal allocations the one with fewer functions is kept, then the
    one with less memory. Empty if no allocation keeps the limits. `called_ahead`: functions start while the epoch
    before runs, wherever both may run at once.
    """
    names = tuple(filter(model.exists, limits.storages))
    # every function needs at least one sample
    counts = np.arange(limits.functions[0], min(limits.functions[1], model.workload.samples) + 1)
    memories = np.arange(limits.memory_mb[0], limits.memory_mb[1] + 1, step_mb)
    grid = _Grid(
        limits=limits,
        trials=trials,
        names=names,
        table=Rows.joined([model.rows(counts, name) for name in names], model.tariff.usd_per_gb_s),
        functions=np.tile(counts, len(names)),
        storage=np.repeat(np.arange(len(names)), len(counts)),
        memory_mb=memories,
        s_per_mb=model.s_per_mb(memories),
        needs_mb=np.tile([model.workload.needs_mb(int(n)) for n in counts], len(names)),
        called_ahead=called_ahead,
    )
    row, first = grid.blocks(WIDTHS[0])
    best = _Front.empty()
    for width, narrower in zip(WIDTHS, (*WIDTHS[1:], 0), strict=True):
        fits = grid.fits(row, first) & grid.holds(row, grid.last(first, width))
        row, first = row[fits], first[fits]
        best = best.with_points(grid, row, first)
        if narrower:
            kept = ~best.dominates(*grid.corner(row, first, width))
            row, first = grid.cut(row[kept], first[kept], width, narrower)
    return grid.boundary(best)


def waves(limits: FunctionsTask, functions: Ints, memory_mb: Ints, trials: int) -> Floats:
    """The number of waves in which so many trials run; infinite where not even one trial fits."""
    fitting = _at_once(limits, functions, memory_mb, trials)
    return np.where(fitting > 0, np.ceil(trials / np.maximum(fitting, 1)), np.inf)


def _at_once(limits: FunctionsTask, functions: Ints, memory_mb: Ints, trials: int) -> Ints:
    fitting = np.full(np.broadcast(functions, memory_mb).shape, trials, dtype=np.int64)
    if limits.concurrency is not None:
        fitting = np.minimum(fitting, limits.concurrency // functions)
    if limits.memory_at_once_mb is not None:
        fitting = np.minimum(fitting, limits.memory_at_once_mb // (functions * memory_mb))
    return fitting


@dataclass(frozen=True, eq=False)
class _Grid:
    """All allocations, as (row, place): a row is a storage and a number of functions, a place is a memory size."""

    limits: FunctionsTask
    trials: int
    names: tuple[str, ...]
    table: Rows
    functions: Ints
    storage: Ints
    memory_mb: Ints
    s_per_mb: Floats
    needs_mb: Floats
    called_ahead: bool

    def blocks(self, width: int) -> tuple[Ints, Ints]:
        """Row and first place of every block of this width."""
        starts = np.arange(0, len(self.memory_mb), width)
        return np.repeat(np.arange(len(self.functions)), len(starts)), np.tile(starts, len(self.functions))

    def fits(self, row: Ints, place: Ints) -> NDArray[np.bool_]:
        """Which of these allocations can run at once; if the first of a block cannot, none of it can."""
        return _at_once(self.limits, self.functions[row], self.memory_mb[place], 1) > 0

    def holds(self, row: Ints, place: Ints) -> NDArray[np.bool_]:
        """Which have enough memory, and finish within one call; if the last of a block does not, none of it does."""
        billed_s = self.table.take(row).billed_s(self.s_per_mb[place])
        enough: NDArray[np.bool_] = self.memory_mb[place] >= self.needs_mb[row]
        return enough & (billed_s <= self.limits.call_s)

    def last(self, first: Ints, width: int) -> Ints:
        """The last place of each block."""
        return np.minimum(first + width, len(self.memory_mb)) - 1

    def evaluate(self, row: Ints, place: Ints) -> tuple[Floats, Floats]:
        """Seconds and dollars of these allocations."""
        table, s_per_mb, ahead = self.table.take(row), self.s_per_mb[place], self._ahead(row, place)
        seconds = table.seconds(s_per_mb, ahead) * self._waves(row, place)
        return seconds, table.usd(s_per_mb, self.memory_mb[place], ahead)

    def corner(self, row: Ints, first: Ints, width: int) -> tuple[Floats, Floats]:
        """The ideal corner of each block: lower bounds on the seconds and on the dollars in it."""
        table = self.table.take(row)
        shortest_s = table.seconds(self.s_per_mb[self.last(first, width)], self.called_ahead)
        # m u(m) is not monotone in a block: take its minimum
        work = np.minimum.reduceat(self.memory_mb * self.s_per_mb, np.arange(0, len(self.memory_mb), width))
        mb_s = self.memory_mb[first] * table.fixed_s + table.mb * work[first // width]
        gb_s = table.functions * mb_s / 1_024
        usd = table.fixed_usd + table.usd_per_s * shortest_s + table.usd_per_gb_s * gb_s
        return shortest_s * self._waves(row, first) * ROUNDING, usd * ROUNDING

    def cut(self, row: Ints, first: Ints, width: int, narrower: int) -> tuple[Ints, Ints]:
        """The same blocks, divided into narrower ones."""
        places = (first[:, None] + np.arange(0, width, narrower)).ravel()
        inside = places < len(self.memory_mb)
        return np.repeat(row, width // narrower)[inside], places[inside]

    def boundary(self, best: _Front) -> Boundary:
        """The front as a `Boundary`."""
        table, s_per_mb, memory_mb = self.table.take(best.row), self.s_per_mb[best.place], self.memory_mb[best.place]
        return Boundary(
            functions=self.functions[best.row],
            memory_mb=memory_mb,
            storage=self.storage[best.row],
            names=self.names,
            seconds=best.seconds,
            usd=best.usd,
            cold_s=table.seconds(s_per_mb),
            cold_usd=table.usd(s_per_mb, memory_mb),
        )

    def _ahead(self, row: Ints, place: Ints) -> bool | NDArray[np.bool_]:
        """Which allocations leave room for the functions of the next epoch."""
        if not self.called_ahead:
            return False
        return _at_once(self.limits, self.functions[row], self.memory_mb[place], 2) > 1

    def _waves(self, row: Ints, place: Ints) -> Floats | float:
        if self.limits.concurrency is None and self.limits.memory_at_once_mb is None:
            return 1.0
        return waves(self.limits, self.functions[row], self.memory_mb[place], self.trials)


@dataclass(frozen=True, eq=False)
class _Front:
    """The Pareto front of the allocations evaluated so far: seconds rise, dollars fall."""

    row: Ints
    place: Ints
    seconds: Floats
    usd: Floats

    @classmethod
    def empty(cls) -> _Front:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))

    def dominates(self, seconds: Floats, usd: Floats) -> NDArray[np.bool_]:
        """Which of these points the front dominates. Equal points are not dominated: ties are broken later."""
        if not len(self.seconds):
            return np.zeros(len(seconds), dtype=bool)
        as_fast = np.searchsorted(self.seconds, seconds, side="right") - 1
        other_s, other_usd = self.seconds[as_fast], self.usd[as_fast]
        dominated: NDArray[np.bool_] = (other_usd < usd) | ((other_usd == usd) & (other_s < seconds))
        return dominated & (as_fast >= 0)

    def with_points(self, grid: _Grid, row: Ints, place: Ints) -> _Front:
        """The front with more points; those that `grid.holds` rules out are ignored."""
        exist = grid.holds(row, place)
        row, place = row[exist], place[exist]
        seconds, usd = grid.evaluate(row, place)
        fresh = ~self.dominates(seconds, usd)
        row, place = np.concatenate([self.row, row[fresh]]), np.concatenate([self.place, place[fresh]])
        seconds, usd = np.concatenate([self.seconds, seconds[fresh]]), np.concatenate([self.usd, usd[fresh]])
        order = np.lexsort((grid.storage[row], place, grid.functions[row], usd, seconds))
        cheapest = np.minimum.accumulate(usd[order])
        order = order[np.concatenate([[True], cheapest[1:] < cheapest[:-1]])[: len(order)]]
        return _Front(row[order], place[order], seconds[order], usd[order])
