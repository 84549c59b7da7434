"""The most popular configurations: those that were best on average over the seen models, in order.

A baseline without any search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd_bench.baselines.serve.candidates import Mask, over, untried
from mlcd_bench.baselines.serve.features import seen_values

NOTHING_SEEN = "the cheapest: no model was seen that would do"


@dataclass(frozen=True)
class Popular:
    """Deterministic: the seed has no effect."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The best untried configuration on average; of equals the cheapest."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        seen = seen_values(self.knowledge, job, space)
        pick = best_then_cheapest(seen.average, space, open_)
        if not len(seen.normalised):
            return Probe(space.configurations[pick], NOTHING_SEEN)
        reason = f"{100 * seen.average[pick]:.0f} % of the optimum on average over {len(seen.normalised)} seen models"
        return Probe(space.configurations[pick], reason)


def best_then_cheapest(score: Floats, space: Space, open_: Mask) -> int:
    """The open configuration with the largest score; of equals the cheapest, then the first."""
    left = np.flatnonzero(open_)
    order = np.lexsort((space.usd_per_s[left], -np.round(score[left], 12)))
    return int(left[order[0]])
