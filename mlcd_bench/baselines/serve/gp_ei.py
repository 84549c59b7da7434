"""Cold Bayesian optimisation: a Gaussian process that has seen no other model, and expected improvement.

Snoek, Larochelle and Adams, 'Practical Bayesian Optimization of Machine Learning Algorithms', NIPS 2012.

Symbols   y(x)   the value of a trial of x, 0 if it fails or breaks a cap; EI: see `process.py`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd_bench.baselines.serve.candidates import generator, over, untried
from mlcd_bench.baselines.serve.features import points, shown
from mlcd_bench.baselines.serve.process import expected_improvement, posterior

FIRST = 2
"""Random trials before the first fit."""


@dataclass(frozen=True)
class GpEi:
    """Two random trials, then the largest expected improvement."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The trial with the largest expected improvement."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        rng, rows = generator(self.seed, history), shown(job, space, history)[0]
        if len(rows) < FIRST:
            pick = int(rng.choice(np.flatnonzero(open_)))
            return Probe(space.configurations[pick], f"drawn at random, {len(rows) + 1} of {FIRST} to begin with")
        promises = improvements(job, space, history)
        pick = best_with_random_ties(np.where(open_, promises, -1.0), rng)
        return Probe(space.configurations[pick], expectation(promises[pick]))


def improvements(job: Job, space: Space, history: History) -> Floats:
    """EI of every configuration as a share of the best so far; of its spread while all values are zero."""
    rows, y = shown(job, space, history)
    x, best = points(space).x, float(y.max(initial=0.0))
    y = y / (best or 1.0)
    mu, sigma = posterior(x[rows], y - y.mean(), x)
    return expected_improvement(mu + y.mean(), sigma, float(y.max()))


def best_with_random_ties(score: Floats, rng: np.random.Generator) -> int:
    """The index of the largest score; of equals a random one."""
    return int(rng.choice(np.flatnonzero(score >= score.max() - 1e-12)))


def expectation(share: float) -> str:
    """The expected improvement of a trial, in words."""
    return f"expected to improve on the best by {100 * share:.2g} %"
