"""References for the methods: the optimum, and random search with a given number of probes.

Neither is available on the command line.
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
    """The paper's 'Opt': trains on the best configuration at once, without probes. An upper bound for every method."""

    label: str = "opt"

    def play(self, problem: Problem, seed: int) -> Result:
        """Without any probe."""
        return result(problem, self.label, seed, History(), optimum(problem), certified=False)


@dataclass(frozen=True)
class RandomProbes:
    """A number of random probes, then the best of them."""

    probes: int

    @property
    def label(self) -> str:
        """Such as 'random, 3 probes'."""
        return f"random, {self.probes} probe{'s' if self.probes > 1 else ''}"

    def play(self, problem: Problem, seed: int) -> Result:
        """One run, on the same cloud and in the same loop as the others."""
        return play(problem, self.label, lambda seed: RandomSearch(seed, self.probes), seed)
