"""The state of Falcon's search: a region of a tree, recomputed from the results of the trials.

Wu et al., SoCC 2022, Algorithm 1, lines 6 to 16: left into a good region while results improve, else right: to another
region, or another tree. Where the paper is silent: docs/methods/falcon.md.

Symbols   v_j   value of trial j          V^(Omega)   mean of v over the trials in a region, equation (3);
                                                      s V(Omega) if there is none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.planners.serve.known_models import KEPT, ByIdentity
from mlcd_bench.baselines.serve.candidates import Mask
from mlcd_bench.baselines.serve.falcon_trees import HEIGHT, Region, Tree, fitting, split
from mlcd_bench.baselines.serve.features import points


@dataclass(frozen=True)
class Place:
    """A region: its tree, its path from the root, and how often it was split further with new data."""

    tree: int
    path: str
    because: str = ""
    deeper: int = 0


@dataclass(frozen=True)
class View:
    """A tree over a space: its points, those whose pruned knobs have their fixed value, and V of each one's leaf."""

    x: Floats
    allowed: Mask
    leaf_values: Floats


@dataclass(frozen=True)
class Forest:
    """The trees of a model over a space, and the trials: rows of the space with their values."""

    trees: tuple[Tree, ...]
    views: tuple[View, ...]
    space: Space
    rows: list[int]
    v: Floats

    @staticmethod
    def of(trees: tuple[Tree, ...], space: Space, rows: list[int], v: Floats) -> Forest:
        """With a view of the space by each tree."""
        return Forest(trees, tuple(_view(ByIdentity(tree, space)) for tree in trees), space, rows, v)

    def scale(self, tree: int) -> float:
        """s, by least squares; 1 while all values are zero."""
        v, seen = self.v, self.views[tree].leaf_values[self.rows]
        return float(seen @ v / (seen @ seen)) if seen @ v > 0 else float(v.max(initial=0.0)) or 1.0

    def inside(self, place: Place) -> Mask:
        """The configurations of a region."""
        return _inside(ByIdentity(self.trees[place.tree], self.views[place.tree]), place.path)

    def after(self, trials: int) -> Forest:
        """The state after the first so many trials: later trials do not affect earlier turns."""
        return replace(self, rows=self.rows[:trials], v=self.v[:trials])

    def best(self, place: Place) -> int | None:
        """The configuration of a region that was best for the seen models; None once the region was split further."""
        region = self.trees[place.tree].at(place.path)
        return None if region is None or place.deeper else points(self.space).rows.get(region.best)

    def predicted(self, place: Place) -> float:
        """V^ of a region."""
        tried = self.inside(place)[self.rows]
        if tried.any():
            return float(self.v[tried].mean())
        region = self.trees[place.tree].at(place.path)
        return self.scale(place.tree) * region.value if region is not None else 0.0

    def deeper(self, place: Place, expected: Floats, inside: Mask) -> Mask:
        """Sub-regions of a leaf, split by the trials' results: the good one of the good one of ..."""
        rows, x = np.flatnonzero(inside), self.views[place.tree].x
        for _ in range(place.deeper):
            boundary = split(x[rows], expected[rows], list(range(x.shape[1])))
            if boundary is None:
                break
            rows = rows[boundary.is_good(x[rows])]
        mask = np.zeros(len(inside), dtype=bool)
        mask[rows] = True
        return mask


def follow(forest: Forest, open_: Mask) -> Place | None:
    """The region of Algorithm 1 after these trials; None if no region has an untried configuration."""
    place = _down(forest, Place(0, "", "left, into the good region of its tree"))
    for trials, (before, now) in enumerate(pairwise(forest.v), start=2):
        # The paper has no failed trials. Here a trial without value is no reason to continue in its region.
        turn = _left if now >= before and now > 0 else _right
        place = turn(forest.after(trials), place)
    roots = [Place(n, "", "the region is exhausted, so all of its tree") for n in range(len(forest.trees))]
    ahead = [place, *sorted(_elsewhere(forest, place), key=forest.predicted, reverse=True), *roots]
    return next((each for each in ahead if (forest.inside(each) & open_).any()), None)


def _down(forest: Forest, place: Place) -> Place:
    """The good child of a region, or the region itself if it has none."""
    region = forest.trees[place.tree].at(place.path + "L")
    return place if region is None else Place(place.tree, place.path + "L", place.because)


def _left(forest: Forest, place: Place) -> Place:
    """Exploit: one level down on the good side; below a leaf, sub-regions from the new data."""
    down = _down(forest, place)
    if down != place:
        return Place(down.tree, down.path, "it improved, so left, into the better part of the region")
    deeper = min(place.deeper + 1, HEIGHT - len(place.path))
    return Place(place.tree, place.path, "it improved, so further into a part of the region", deeper)


def _right(forest: Forest, place: Place) -> Place:
    """Explore: the sibling region on the path, or the good region of another tree, with the largest prediction."""
    return max(_elsewhere(forest, place), key=forest.predicted, default=place)


def _elsewhere(forest: Forest, place: Place) -> list[Place]:
    """The other child at each turn of the path, the last turn first; then the other trees, in their order."""
    turns = range(len(place.path) - 1, -1, -1)
    beside = [place.path[:i] + ("R" if place.path[i] == "L" else "L") for i in turns]
    regions = [Place(place.tree, path, "it did not improve, so right, to another region") for path in beside]
    others = [n for n in range(len(forest.trees)) if n != place.tree]
    return regions + [_down(forest, Place(n, "", "it did not improve, so to another tree")) for n in others]


@lru_cache(4 * KEPT)
def _view(same: ByIdentity) -> View:
    tree, space = same.objects
    space_points = points(space)
    allowed = np.zeros(len(space), dtype=bool)
    allowed[fitting(space_points, tree.fixed)] = True
    x = tree.encode(space_points)
    return View(x, allowed, _leaf_values(tree.root, x))


@lru_cache(4_096)
def _inside(same: ByIdentity, path: str) -> Mask:
    tree, view = same.objects
    mask: Mask = view.allowed.copy()
    for boundary, good in tree.boundaries(path):
        mask &= boundary.is_good(view.x) == good
    return mask


def _leaf_values(region: Region, x: Floats) -> Floats:
    values = np.full(len(x), region.value)
    if region.boundary is not None and region.left is not None and region.right is not None:
        good = region.boundary.is_good(x)
        values[good], values[~good] = _leaf_values(region.left, x[good]), _leaf_values(region.right, x[~good])
    return values
