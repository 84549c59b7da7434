"""A portfolio: the set of configurations that covers the seen models best, grown one by one.

Greedy maximisation of a submodular function, within 1 - 1/e of the best set of its size (Nemhauser, Wolsey and Fisher,
Mathematical Programming 14, 1978).

Symbols   Y[m, x]   value of x for model m, its optimum being 1         F(S)   mean over m of max over x in S of Y[m, x]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd_bench.baselines.serve.candidates import over, untried
from mlcd_bench.baselines.serve.features import seen_values
from mlcd_bench.baselines.serve.popular import best_then_cheapest


@dataclass(frozen=True)
class Portfolio:
    """It learns nothing from its trials: the set is fixed before the first one. Deterministic."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The configuration that adds most to F; once none adds anything, the best untried one on average."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        seen = seen_values(self.knowledge, job, space)
        y = seen.normalised
        tried = [space.index[m.configuration] for m in history.measurements]
        covered = coverage(y, tried)
        gain = np.maximum(y, covered[:, None]).sum(axis=0) - covered.sum() if len(y) else np.zeros(len(space))
        if gain[open_].max() < 1e-9:
            pick = best_then_cheapest(seen.average, space, open_)
            return Probe(space.configurations[pick], "the seen models are covered: the best untried one on average")
        pick = best_then_cheapest(gain, space, open_)
        reaches = float(covered.mean() + gain[pick] / len(y))
        reason = f"with it, {100 * reaches:.0f} % of the optimum on average over {len(y)} seen models"
        return Probe(space.configurations[pick], reason)


def coverage(y: Floats, chosen: list[int]) -> Floats:
    """The best value of the chosen configurations for each model."""
    most: Floats = y[:, chosen].max(axis=1, initial=0.0)
    return most
