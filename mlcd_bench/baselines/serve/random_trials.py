"""Random search: the best of random configurations.

Bergstra and Bengio, 'Random Search for Hyper-Parameter Optimization', JMLR 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd_bench.baselines.serve.candidates import generator, over, untried


@dataclass(frozen=True)
class RandomTrials:
    """Each untried configuration equally likely."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """One more random configuration."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        pick = int(generator(self.seed, history).choice(np.flatnonzero(open_)))
        return Probe(space.configurations[pick], f"drawn at random from {int(open_.sum()):,} untried ones")
