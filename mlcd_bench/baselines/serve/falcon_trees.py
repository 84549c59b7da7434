"""Falcon's trees: the space of an operator, split again and again into a good and a bad region.

Wu et al., SoCC 2022, section 3.2. Where the paper is silent: docs/methods/falcon.md.

Symbols   D = {(a_i, v_i)}   configurations and their offline value for an operator
          Omega_nm           region m of tree n; its left child is the good one
          V(Omega)           mean of v over D in Omega, equation (2)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from mlcd.core.configuration import Floats, Space
from mlcd.planners.serve.nouns import Knobs, knobs_of
from mlcd_bench.baselines.serve.falcon_curves import Curve, best_setting, curves, kept_knobs
from mlcd_bench.baselines.serve.features import KnobCode, Points, points

HEIGHT = 8
"""Section 6: 'we measure the tree height empirically and set it to eight'."""
FEWEST = 4
"""A region with fewer configurations is not split."""

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Boundary:
    """A linear support vector machine's: good where columns of the points times weights, plus bias, is above zero."""

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    bias: float

    def is_good(self, x: Floats) -> NDArray[np.bool_]:
        """On which side each point lies."""
        good: NDArray[np.bool_] = x[:, list(self.columns)] @ np.array(self.weights) + self.bias > 0
        return good


@dataclass(frozen=True)
class Region:
    """A part of the space, with V and the best configuration that was seen there; split, or a leaf."""

    value: float
    best: Knobs
    boundary: Boundary | None = None
    left: Region | None = None
    right: Region | None = None

    @property
    def height(self) -> int:
        """Boundaries on the longest way down."""
        return 0 if self.left is None or self.right is None else 1 + max(self.left.height, self.right.height)


@dataclass(frozen=True)
class Tree:
    """The regions of one operator. `fixed`: knobs with little effect, set to their best value on average."""

    operator: str
    codes: tuple[KnobCode, ...]
    fixed: Knobs
    curves: tuple[Curve, ...]
    root: Region

    def encode(self, space_points: Points) -> Floats:
        """The points of a space in this tree's columns."""
        if self.codes == space_points.codes:
            return space_points.x
        blocks = [code.encode(space_points.settings[code.name]) for code in self.codes]
        return np.hstack(blocks) if blocks else space_points.x

    def boundaries(self, path: str) -> Iterator[tuple[Boundary, bool]]:
        """Down a path such as 'LLR': each boundary, and whether the path keeps to its good side."""
        here: Region | None = self.root
        for turn in path:
            if here is None or here.boundary is None:
                return
            yield here.boundary, turn == "L"
            here = here.left if turn == "L" else here.right

    def at(self, path: str) -> Region | None:
        """The region at the end of a path; None if the tree ends before."""
        here: Region | None = self.root
        for turn in path:
            if here is None:
                return None
            here = here.left if turn == "L" else here.right
        return here


def build_tree(operator: str, v: Floats, space: Space) -> Tree:
    """The tree of the values of configurations for an operator."""
    space_points = points(space)
    settings = {code.name: space_points.settings[code.name] for code in space_points.codes}
    if not settings:
        return Tree(operator, space_points.codes, (), (), Region(float(v.mean()), knobs_of(space.configurations[0])))
    kept = kept_knobs(v, settings)
    fixed = tuple((name, best_setting(v, settings[name])) for name in settings if name not in kept)
    rows = fitting(space_points, fixed)
    if not len(rows):  # a space with gaps may not contain the combination of all best values
        kept, fixed, rows = tuple(settings), (), np.arange(len(space))
    pairs = curves(v[rows], {name: tuple(settings[name][i] for i in rows) for name in kept})
    return Tree(operator, space_points.codes, fixed, pairs, _Grower(space, space_points, v).grown(rows, _levels(pairs)))


def fitting(space_points: Points, fixed: Knobs) -> Rows:
    """The configurations with these knob values."""
    fits = np.ones(len(space_points.x), dtype=bool)
    for name, setting in fixed:
        fits &= np.array([each == setting for each in space_points.settings[name]])
    return np.flatnonzero(fits)


def _levels(pairs: tuple[Curve, ...]) -> tuple[tuple[str, ...], ...]:
    """The knobs that each level of a tree splits by: curve after curve, then again from the first."""
    once = [curve.knobs for curve in pairs for _ in range(curve.levels)]
    return tuple(islice(cycle(once), HEIGHT)) if once else ()


@dataclass(frozen=True)
class _Grower:
    space: Space
    space_points: Points
    v: Floats

    def grown(self, rows: Rows, levels: tuple[tuple[str, ...], ...]) -> Region:
        """The region of some configurations, split by the first level that can."""
        v = self.v[rows]
        value, best = float(v.mean()), knobs_of(self.space.configurations[int(rows[np.argmax(v)])])
        for i, knobs in enumerate(levels):
            boundary = split(self.space_points.x[rows], v, self.space_points.columns(*knobs))
            if boundary is not None:
                good = boundary.is_good(self.space_points.x[rows])
                left, right = (self.grown(rows[side], levels[i + 1 :]) for side in (good, ~good))
                return Region(value, best, boundary, left, right)
        return Region(value, best)


def split(x: Floats, v: Floats, columns: list[int]) -> Boundary | None:
    """K-means finds a good and a bad cluster of points with their values, a support vector machine their boundary.

    None where that leaves one side empty, or the better side is not better.
    """
    from sklearn.svm import SVC  # slow to import, and few commands need it

    spread = float(np.ptp(v))
    if len(v) < FEWEST or spread < 1e-9 or not columns or np.ptp(x[:, columns], axis=0).max() == 0:
        return None
    both = np.column_stack([x[:, columns], (v - v.min()) / spread])
    good = two_means(both, both[int(np.argmin(v))], both[int(np.argmax(v))])
    if good.all() or not good.any():
        return None
    # Configurations that differ only in other knobs are one point: weights give the same result much faster.
    labelled, count = np.unique(np.column_stack([x[:, columns], good]), axis=0, return_counts=True)
    machine = SVC(kernel="linear").fit(labelled[:, :-1], labelled[:, -1], sample_weight=count)
    weights, bias = machine.coef_[0], float(machine.intercept_[0])
    boundary = Boundary(tuple(columns), tuple(float(weight) for weight in weights), bias)
    side = boundary.is_good(x)
    if side.all() or not side.any() or v[side].mean() <= v[~side].mean():
        return None
    return boundary


def two_means(rows: Floats, bad: Floats, good: Floats) -> NDArray[np.bool_]:
    """Lloyd's k-means for two clusters, from two given centres: which rows end up with the second."""
    member = np.zeros(len(rows), dtype=bool)
    while True:
        nearer: NDArray[np.bool_] = ((rows - good) ** 2).sum(axis=1) < ((rows - bad) ** 2).sum(axis=1)
        if (nearer == member).all() or nearer.all() or not nearer.any():
            return nearer
        member, good, bad = nearer, rows[nearer].mean(axis=0), rows[~nearer].mean(axis=0)


_CODEC: TypeAdapter[tuple[Tree, ...]] = TypeAdapter(tuple[Tree, ...])


def to_json(trees: tuple[Tree, ...]) -> str:
    """Trees as JSON: a linear boundary is a weight for each column and a bias."""
    return _CODEC.dump_json(trees, indent=1).decode()


def from_json(text: str) -> tuple[Tree, ...]:
    """Trees from JSON; `ValueError` if the text is invalid."""
    return _CODEC.validate_json(text)
