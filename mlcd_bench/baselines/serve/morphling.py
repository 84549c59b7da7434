"""Morphling: a meta-model of the seen models as the prior mean, adapted by gradient steps, and a Gaussian process.

Wang et al., 'Morphling: Fast, Near-Optimal Auto-Configuration for Cloud-Native Model Serving', SoCC 2021. How it is
adapted: docs/methods/serve-baselines.md. The meta-model: `meta_model.py`.

Symbols   f(x; theta)   the meta-model, of values whose optimum is 1      s   the new model's scale: y is about s f
          r(x)          y / s - f(x; theta'), a Gaussian process          EI  see `process.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import KEPT, Knowledge
from mlcd_bench.baselines.serve.candidates import generator, over, untried
from mlcd_bench.baselines.serve.features import SeenValues, points, seen_values, shown
from mlcd_bench.baselines.serve.gp_ei import best_with_random_ties, expectation
from mlcd_bench.baselines.serve.meta_model import MetaModel
from mlcd_bench.baselines.serve.process import expected_improvement, posterior

SPREAD = 0.2
"""Assumed deviation of a new model's values from the adapted meta-model, relative to an optimum of 1, while there are
too few trials."""


@dataclass(frozen=True)
class Morphling:
    """The meta-model's best first, then the largest expected improvement by the adapted one."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The trial with the largest expected improvement."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        rng, x = generator(self.seed, history), points(space).x
        meta = _meta_model(seen_values(self.knowledge, job, space))
        rows, y = shown(job, space, history)
        if not rows:
            pick = best_with_random_ties(np.where(open_, meta.expected, -np.inf), rng)
            return Probe(space.configurations[pick], "the best by the meta-model of the seen models")
        promises = _improvements(meta, x, rows, y)
        pick = best_with_random_ties(np.where(open_, promises, -1.0), rng)
        return Probe(space.configurations[pick], expectation(promises[pick]))


@lru_cache(KEPT)
def _meta_model(seen: SeenValues) -> MetaModel:
    return MetaModel.trained(points(seen.space).x, seen.normalised)


def _improvements(meta: MetaModel, x: Floats, rows: list[int], y: Floats) -> Floats:
    """EI as a share of the best so far; of the scale while all values are zero."""
    before = meta.expected[rows]
    scale = float(before @ y / (before @ before)) if before @ y > 0 else 1.0
    mean = meta.adapted(rows, y / scale)
    mu, sigma = posterior(x[rows], y / scale - mean[rows], x, SPREAD)
    best = float(y.max()) / scale
    return expected_improvement(mean + mu, sigma, best) / (best or 1.0)
