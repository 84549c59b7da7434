"""One node, then linear: common practice that measures one node and multiplies.

No paper. HeterBO, figure 1 and section II, shows why it misleads: no job scales linearly for long.

Symbols   m, n   instance type, nodes     n0   the smallest size of m that runs
          s(m, n) = s(m, n0) n / n0       samples a second, as extrapolated
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd_bench.baselines.train.candidates import (
    best_of,
    measured_s,
    next_size,
    promising,
    same_type,
    untried,
    yardstick,
)


@dataclass(frozen=True)
class OneNodeLinear:
    """The smallest size of the most promising types, then the best choice if they scaled linearly."""

    types: int = 3

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Measure one size of each promising type, or take the best by extrapolation."""
        known = {m.configuration.offer for m in history.good}
        if len(known) < self.types:
            open_ = untried(job, space, history)
            for offer in promising(job, space):
                size = None if offer in known else next_size(space, history, open_, offer)
                if size is not None:
                    said = "the smallest size of a promising type,"
                    return Probe(size, f"{said} {yardstick(job)}, {len(known) + 1} of {self.types}")
        if not known:
            return Finish("the job ran on none of the allowed configurations")
        finish_s = _extrapolated_s(job, space, history)
        pick = best_of(job, space, history, finish_s, probes_count=True)
        return Finish("the best, if every type scales linearly from its smallest size", pick)


def _extrapolated_s(job: Job, space: Space, history: History) -> Floats:
    finish_s = np.full(len(space), np.inf)
    for m in history.good:
        n0 = m.configuration.nodes
        larger = same_type(space, m.configuration.offer) & (space.nodes > n0)
        finish_s[larger] = job.work_samples / (m.rate * space.nodes[larger] / n0)
    either: Floats = np.minimum(finish_s, measured_s(job, space, history))
    return either
