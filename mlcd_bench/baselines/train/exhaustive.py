"""Exhaustive search: measure everything, then choose.

The reference of every evaluation, such as Yi et al., IPDPS 2020 (HeterBO), section V. It finds the optimum,
and pays for every configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd_bench.baselines.train.candidates import best_measured, untried


@dataclass(frozen=True)
class Exhaustive:
    """Probes everything, the cheapest first."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The cheapest probe that is left."""
        open_ = untried(job, space, history)
        if not open_.any():
            because = "every allowed configuration was tried"
            return Finish(because, best_measured(job, space, history))
        pick = int(np.argmin(np.where(open_, space.probe_usd, np.inf)))
        return Probe(space.configurations[pick], f"everything, cheapest probe first: {int(open_.sum())} to go")
