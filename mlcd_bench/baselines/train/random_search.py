"""Random search: the best of a few random configurations.

Bergstra and Bengio, 'Random Search for Hyper-Parameter Optimization', JMLR 2012; in Yi et al., IPDPS 2020
(HeterBO), figure 12, by number of probes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.core.units import counted
from mlcd_bench.baselines.train.candidates import best_measured, generator, untried


@dataclass(frozen=True)
class RandomSearch:
    """A fixed number of probes, each untried configuration equally likely; more only until one runs the job."""

    seed: int = 0
    probes: int = 6

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """One more random probe, or the best of those made."""
        done = len(history.measurements)
        if done >= self.probes and history.good:
            return Finish(f"{counted(done, 'probe')} drawn, as set", best_measured(job, space, history))
        open_ = np.flatnonzero(untried(job, space, history))
        if not len(open_):
            return Finish("nothing is left to draw from", best_measured(job, space, history))
        pick = int(generator(self.seed, history).choice(open_))
        because = f"drawn at random, {done + 1} of {self.probes}"
        if done >= self.probes:
            because = f"drawn at random: none of {counted(done, 'probe')} ran the job"
        return Probe(space.configurations[pick], because)
