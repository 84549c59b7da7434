"""ConvBO: conventional Bayesian optimisation, HeterBO's first baseline.

Snoek et al., NIPS 2012, as Yi et al., IPDPS 2020 (HeterBO), sections III and V use it; 'improved' is their
BO_imprd, figure 18. Symbols: `conventional.py`. How we interpret it: docs/methods/baselines.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd_bench.baselines.train.candidates import generator, untried
from mlcd_bench.baselines.train.conventional import (
    LEAST_RUNS,
    PASSES,
    Belief,
    affordable,
    finish,
    incumbent,
    longest_s,
    over,
)

FIRST_POINTS = 2
STOP_SHARE = 0.01
"""As a share of J*: an expected improvement below it ends the search."""


@dataclass(frozen=True)
class ConvBO:
    """Two random points, then the largest EI. `improved`: stops before probes and the final run exceed the limits."""

    seed: int = 0
    improved: bool = False

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The largest expected improvement, or the best measured once that is small."""
        open_ = untried(job, space, history)
        best = incumbent(job, space, history, improved=self.improved)
        keeps = affordable(job, space, history, best) if self.improved else np.ones_like(open_)
        if (end := over(job, space, history, open_, keeps, improved=self.improved)) is not None:
            return end
        if len(history.good) < FIRST_POINTS:
            pick = int(generator(self.seed, history).choice(np.flatnonzero(open_ & keeps)))
            return Probe(space.configurations[pick], f"a random first point, {len(history.good) + 1} of {FIRST_POINTS}")
        belief = Belief.of(job, space, history, best)
        if self.improved:
            open_ &= belief.finish_s <= longest_s(job, space, history)
            if not open_.any():
                because = "nothing untried is expected to end within the limits"
                return finish(job, space, history, because, improved=True)
        share = belief.share(open_)
        pick = int(np.argmax(np.where(open_, share, -np.inf)))
        if share[pick] < STOP_SHARE and len(history.good) >= LEAST_RUNS:
            because = f"no probe is expected to improve on the best by {STOP_SHARE:.0%}"
            return finish(job, space, history, because, improved=self.improved)
        if not keeps[pick]:
            return finish(job, space, history, PASSES, improved=True)
        return belief.probe(pick, float(share[pick]))
