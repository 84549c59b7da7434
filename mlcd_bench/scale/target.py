"""The target of a model's runs, and when each reached it.

The metric of a run is the best rolling median of five evaluations so far. 'Final' is where that ends. The target is
1 % worse than the worst final among the batch sizes, so that every run reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats
from mlcd_bench.scale.folder import Run

WINDOW = 5
SLACK = 0.01


@dataclass(frozen=True)
class Reached:
    """A run up to its target."""

    run: Run
    evaluation: int
    """The index of the evaluation that reached the target, from 0."""

    @property
    def iterations(self) -> float:
        """To the target."""
        return float(self.run.iterations[self.evaluation])

    @property
    def samples(self) -> float:
        """To the target."""
        return self.iterations * self.run.global_batch


@dataclass(frozen=True)
class Target:
    """A level of a metric; `sign` is -1 if lower is better."""

    level: float
    sign: int

    def reached(self, run: Run) -> Reached | None:
        """When the run first reached it; None if it never did."""
        at = best_so_far(run, self.sign) >= self.sign * self.level
        return Reached(run, int(np.argmax(at))) if at.any() else None


def common_target(runs: Sequence[Run]) -> Target:
    """1 % worse than the worst final value. Higher is better if most runs moved up."""
    moved = [np.sign(run.metric[-1] - run.metric[0]) for run in runs]
    sign = -1 if np.sum(moved) < 0 else 1
    worst = min(best_so_far(run, sign)[-1] for run in runs)
    return Target(float(sign * (worst - SLACK * abs(worst))), sign)


def best_so_far(run: Run, sign: int) -> Floats:
    """The best rolling median until each evaluation (higher is better)."""
    values = sign * run.metric
    rolling = [np.median(values[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(values))]
    best: Floats = np.maximum.accumulate(np.array(rolling, dtype=float))
    return best
