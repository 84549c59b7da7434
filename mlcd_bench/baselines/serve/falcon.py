"""Falcon: a tree for each key operator of the model, searched by MCTS-BO.

Wu et al., 'Serving Unseen Deep Learning Models with Near-Optimal Configurations', SoCC 2022, section 3.3, Algorithm 1.
Differences from the paper: docs/methods/falcon.md. The parts: `key_operators.py`, `falcon_curves.py`,
`falcon_trees.py`, `falcon_walk.py`.

Symbols   KOP             key operator                  Omega_n, Omega_nm   tree n, its region m
          a_j, v_j        trial j, and its value        V(Omega)            what a region is predicted to give
          s               the new model's scale: v is about s V of the leaf; EI within a region: see `process.py`
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import KEPT, Knowledge
from mlcd.planners.serve.model_facts import Profile
from mlcd.planners.serve.nouns import service_of
from mlcd.planners.serve.operators.onnx_profile import KEY_SHARE, parts
from mlcd_bench.baselines.serve.candidates import Mask, generator, over, untried
from mlcd_bench.baselines.serve.falcon_trees import Tree, build_tree
from mlcd_bench.baselines.serve.falcon_walk import Forest, Place, follow
from mlcd_bench.baselines.serve.features import SeenValues, seen_values, shown
from mlcd_bench.baselines.serve.gp_ei import best_with_random_ties
from mlcd_bench.baselines.serve.process import expected_improvement, posterior

SPREAD = 0.2
"""Assumed deviation of a new model's values from V, relative to an optimum of 1, while there are too few trials."""


@dataclass(frozen=True)
class Falcon:
    """One random trial, then left while results improve and right when they do not; a Gaussian process inside a region.

    `stored`: trees built before, by `trees` or from a file.
    """

    knowledge: Knowledge
    seed: int = 0
    stored: tuple[Tree, ...] = ()

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Where Algorithm 1 goes next."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        rng, (rows, v) = generator(self.seed, history), shown(job, space, history)
        if not rows:
            pick = int(rng.choice(np.flatnonzero(open_)))
            return Probe(space.configurations[pick], "a random first trial shows the model's key operators")
        forest = Forest.of(self.stored or self.trees(job, space), space, rows, v)
        place = follow(forest, open_)
        if place is not None:
            return _trial(forest, place, open_, rng)
        pick = best_with_random_ties(np.where(open_, _Belief.of(forest, 0).promises, -1.0), rng)
        return Probe(space.configurations[pick], "every region was searched: the most promising of what was pruned")

    def trees(self, job: Job, space: Space) -> tuple[Tree, ...]:
        """A tree for each key operator of the model that seen models have, too.

        If there is none, or no profile of the operators: one tree for all seen models.
        """
        seen, wanted = seen_values(self.knowledge, job, space), key_weights(service_of(job).model.profiles)
        known = tuple(tree for operator in wanted if (tree := _tree(seen, operator)) is not None)
        return known or (_tree_of_all(seen),)


@lru_cache(4 * KEPT)
def _tree(seen: SeenValues, operator: str) -> Tree | None:
    """The tree of the models with this key operator, weighted by its share in each; None if there are none."""
    shares = np.array([key_weights(model.facts.profiles).get(operator, 0.0) for model in seen.knowledge.models])
    best = seen.y.max(axis=1, initial=0.0)
    counts = (shares > 0) & (best > 0)
    if not counts.any():
        return None
    v: Floats = shares[counts] @ (seen.y[counts] / best[counts, None]) / shares[counts].sum()
    return build_tree(operator, v, seen.space)


@lru_cache(KEPT)
def _tree_of_all(seen: SeenValues) -> Tree:
    return build_tree("all operators", seen.average, seen.space)


@dataclass(frozen=True)
class _Belief:
    """For every configuration, in units of s: V of its leaf, and a Gaussian process of the residuals of the trials."""

    mu: Floats
    sigma: Floats
    best: float

    @staticmethod
    def of(forest: Forest, tree: int) -> _Belief:
        rows, v, view = forest.rows, forest.v / forest.scale(tree), forest.views[tree]
        mu, sigma = posterior(view.x[rows], v - view.leaf_values[rows], view.x, SPREAD)
        return _Belief(view.leaf_values + mu, sigma, float(v.max()))

    @property
    def promises(self) -> Floats:
        """EI."""
        return expected_improvement(self.mu, self.sigma, self.best)


def _trial(forest: Forest, place: Place, open_: Mask, rng: np.random.Generator) -> Probe:
    """The best known configuration of a region, if nothing was tried there yet; else the one with the largest EI."""
    configurations, inside = forest.space.configurations, forest.inside(place)
    reason = f"{forest.trees[place.tree].operator}: {place.because}"
    best = forest.best(place)
    if best is not None and open_[best] and not inside[forest.rows].any():
        return Probe(configurations[best], f"{reason}; the best there for the seen models")
    belief = _Belief.of(forest, place.tree)
    inside = forest.deeper(place, belief.mu, inside & open_)
    pick = best_with_random_ties(np.where(inside, belief.promises, -1.0), rng)
    return Probe(configurations[pick], f"{reason}; the most promising of {int(inside.sum())} there")


def key_weights(profiles: Sequence[Profile]) -> Mapping[str, float]:
    """The key operators of a model over all profiled passes, in order, each with its mean share.

    Empty without a profile.
    """
    time: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    for profile in profiles:
        for part in parts(profile):
            time[part.operator.name] += part.time_share / len(profiles)
            memory[part.operator.name] += part.memory_share / len(profiles)
    both = {name: (time[name] + memory[name]) / 2 for name in time if max(time[name], memory[name]) >= KEY_SHARE}
    return {name: both[name] for name in sorted(both, key=lambda name: (-both[name], name))}
