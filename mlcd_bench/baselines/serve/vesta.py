"""Vesta adapted to serving: knowledge of seen models is transferred through labels, in a bipartite graph of two layers.

Wu et al., 'Best VM Selection for Big Data Applications across Multiple Frameworks by Transfer Learning', ICPP 2021.
How it is adapted: docs/methods/serve-baselines.md.

Symbols   model -- label -- configuration      Y[m, x]   value of x for model m, its optimum being 1
          V[l, x]   weight of a label's edge to a configuration: mean of Y over the models with the label
          u[l]      weight of the new model's edge to a label, none negative; y(x) = sum over l of u[l] V[l, x]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import KEPT, Knowledge
from mlcd_bench.baselines.serve.candidates import generator, over, untried
from mlcd_bench.baselines.serve.features import SeenValues, seen_values, shown
from mlcd_bench.baselines.serve.popular import NOTHING_SEEN, best_then_cheapest

LABELS = 9
"""K of k-means, as the paper recommends; half the models where there are fewer than 18."""
RANDOM_TRIALS = 3
"""Random trials that determine the new model's labels."""
RIDGE = 0.1
"""Ridge penalty that pulls the edges towards those of the average seen model."""


@dataclass(frozen=True)
class Vesta:
    """Three random trials determine the labels of the model; then the best by these labels."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """A random configuration, or the best by the labels."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        rows, y = shown(job, space, history)
        if len(rows) < RANDOM_TRIALS:
            pick = int(generator(self.seed, history).choice(np.flatnonzero(open_)))
            return Probe(
                space.configurations[pick], f"random, to find the model's labels: {len(rows) + 1} of {RANDOM_TRIALS}"
            )
        v, common = _labels(seen_values(self.knowledge, job, space))
        u = edges(v[:, rows], y, common)
        pick = best_then_cheapest(u @ v, space, open_)
        if not len(v):
            return Probe(space.configurations[pick], NOTHING_SEEN)
        strongest = int(np.argmax(u / common))
        return Probe(
            space.configurations[pick], f"the best by its labels, most of all label {strongest + 1} of {len(v)}"
        )


@lru_cache(KEPT)
def _labels(seen: SeenValues) -> tuple[Floats, Floats]:
    """V, and how common each label is among the seen models."""
    from sklearn.cluster import KMeans  # slow to import, and few commands need it

    y = seen.normalised
    if not len(y):
        return y, np.zeros(0)
    count = min(LABELS, max(1, len(y) // 2), len(np.unique(y, axis=0)))
    label = KMeans(count, n_init=4, random_state=0).fit_predict(y)
    v = np.array([y[label == each].mean(axis=0) for each in range(count)])
    return v, np.bincount(label, minlength=count) / len(y)


def edges(v: Floats, y: Floats, common: Floats) -> Floats:
    """u by ridge regression of the trials on the labels, pulled towards what is common, none negative.

    The unknown scale of the new model is the one at which the average model fits the trials best.
    """
    if not len(common):
        return common
    average = common @ v
    scale = float(average @ y / (average @ average)) if average @ y > 0 else 1.0
    weight = np.sqrt(RIDGE)
    u: Floats = nnls(np.vstack([v.T, weight * np.eye(len(common))]), np.append(y / scale, weight * common))[0]
    return u
