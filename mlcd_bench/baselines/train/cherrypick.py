"""CherryPick: Bayesian optimisation of cloud configurations on a trimmed space.

Alipourfard et al., 'CherryPick: Adaptively Unearthing the Best Cloud Configurations for Big Data Analytics',
NSDI 2017; 'improved' is CP_imprd of Yi et al., IPDPS 2020 (HeterBO), figure 18. Further symbols:
`conventional.py`. How we interpret it, and how the space is trimmed without a human: docs/methods/baselines.md.

Symbols   T_max(D)   the longest time to finish on D within the limits
          EI(D) P(T(D) <= T_max(D))   the acquisition under a constraint, section 3.4
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd_bench.baselines.train.candidates import Mask, untried
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
from mlcd_bench.baselines.train.gaussian_process import features

FIRST_POINTS = 3
STOP_SHARE = 0.10
"""As a share of J*: an expected improvement below it ends the search, after the minimum number of runs."""


@dataclass(frozen=True)
class CherryPick:
    """Three spread points, then the largest EI until it is below 10 %. `improved`: under the limits' constraint."""

    seed: int = 0
    improved: bool = False

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The largest expected improvement in the trimmed space, or the best measured once that is small."""
        open_ = untried(job, space, history) & trimmed(space)
        best = incumbent(job, space, history, improved=self.improved)
        keeps = affordable(job, space, history, best) if self.improved else np.ones_like(open_)
        if (end := over(job, space, history, open_, keeps, improved=self.improved)) is not None:
            return end
        if len(history.good) < FIRST_POINTS:
            pick = self._spread(space, history, open_ & keeps)
            because = f"a first point, spread over the space, {len(history.good) + 1} of {FIRST_POINTS}"
            return Probe(space.configurations[pick], because)
        belief = Belief.of(job, space, history, best)
        share = belief.share(open_)
        if self.improved:
            share = share * belief.chance(longest_s(job, space, history))
        pick = int(np.argmax(np.where(open_, share, -np.inf)))
        if share[pick] < STOP_SHARE and len(history.good) >= LEAST_RUNS:
            because = f"no probe is expected to improve on the best by {STOP_SHARE:.0%}"
            return finish(job, space, history, because, improved=self.improved)
        if not keeps[pick]:
            return finish(job, space, history, PASSES, improved=True)
        return belief.probe(pick, float(share[pick]))

    def _spread(self, space: Space, history: History, open_: Mask) -> int:
        """The open configuration nearest to the next point of a quasi-random sequence, shifted by the seed."""
        x = features(space)
        x = x[:, np.ptp(x, axis=0) > 0]
        ordinal = len(history.measurements) + len(history.refusals)
        at = (np.random.default_rng(self.seed).random(x.shape[1]) + ordinal * _golden(x.shape[1])) % 1.0
        distance = ((x - at) ** 2).sum(axis=1)
        return int(np.argmin(np.where(open_, distance, np.inf)))


def trimmed(space: Space) -> Mask:
    """The coarse grid of sizes: of each type the smallest, then each at least twice the last, and the largest."""
    kept = np.zeros(len(space), dtype=bool)
    for i in range(len(space.choices)):
        here = np.flatnonzero(space.offer_index == i)
        last = 0.0
        for row in here:
            if space.nodes[row] >= 2 * last:
                kept[row], last = True, space.nodes[row]
        kept[here[-1:]] = True
    return kept


def _golden(dimensions: int) -> Floats:
    """Steps of an additive low-discrepancy sequence: powers of 1/g, where g^(d+1) = g + 1."""
    g = 2.0
    for _ in range(50):
        g = (1 + g) ** (1 / (dimensions + 1))
    steps: Floats = g ** -np.arange(1.0, dimensions + 1)
    return steps
