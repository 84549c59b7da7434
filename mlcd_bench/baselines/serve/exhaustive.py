"""Exhaustive search: try everything, then choose. The reference for accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd_bench.baselines.serve.candidates import over, untried


@dataclass(frozen=True)
class Exhaustive:
    """Tries everything, the cheapest first, as far as the number of trials allows."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The cheapest trial that is left."""
        open_ = untried(job, space, history)
        # A launch that failed by chance is repeated once, so there are at most twice as many trials as configurations.
        if (end := over(job, history, open_, most=2 * len(space))) is not None:
            return end
        pick = int(np.argmin(np.where(open_, space.probe_usd, np.inf)))
        return Probe(space.configurations[pick], f"everything, cheapest first: {int(open_.sum()):,} to go")
