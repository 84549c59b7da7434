"""Random search: configurations by lot, the best of them.

Bergstra and Bengio, 'Random Search for Hyper-Parameter Optimization', JMLR 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.configuration import Space
from mlcd.history import History
from mlcd.job import Job
from mlcd.planners.serve.candidates import generator, over, untried
from mlcd.seen import Knowledge
from mlcd.strategy import Probe, Step


@dataclass(frozen=True)
class RandomTrials:
    """Each of the untried equally likely."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """One more by lot."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        pick = int(generator(self.seed, history).choice(np.flatnonzero(open_)))
        return Probe(space.configurations[pick], f"drawn by lot from {int(open_.sum()):,} that are left")
