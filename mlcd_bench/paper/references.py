"""What methods are held against: the optimum, and random search by its number of probes.

Neither has a name on the command line: the one never searches, the other has a number.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.history import History
from mlcd_bench.baselines.train import RandomSearch
from mlcd_bench.paper.cloud import optimum
from mlcd_bench.problems import Problem
from mlcd_bench.train import Result, play, result


@dataclass(frozen=True)
class Optimum:
    """The paper's 'Opt': trains on the best configuration at once. What it gains is the most that anybody could."""

    label: str = "opt"

    def play(self, problem: Problem, seed: int) -> Result:
        """No probe at all."""
        return result(problem, self.label, seed, History(), optimum(problem), certified=False)


@dataclass(frozen=True)
class Drawn:
    """So many probes at random, and then the best of them."""

    probes: int

    @property
    def label(self) -> str:
        """Such as 'random, 3 probes'."""
        return f"random, {self.probes} probe{'s' if self.probes > 1 else ''}"

    def play(self, problem: Problem, seed: int) -> Result:
        """One run, on the same cloud and through the same loop as all others."""
        return play(problem, self.label, lambda seed: RandomSearch(seed, self.probes), seed)
