"""The entrants of the studies. The paper's methods run raw, as in the paper.

HeterBO and net-value keep their own reserve; no guard enforces the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mlcd.core.job import Search
from mlcd_bench.paper.cloud import favoured
from mlcd_bench.paper.references import Optimum
from mlcd_bench.problems import Problem
from mlcd_bench.train import Result, Setting, run


def _whole(problem: Problem) -> Problem:
    return problem


@dataclass(frozen=True)
class Named:
    """A method by its name. `sees` returns its view of the problem: all of it, unless the paper restricted it."""

    label: str
    method: str
    setting: Setting = field(default_factory=Setting)
    sees: Callable[[Problem], Problem] = _whole

    def play(self, problem: Problem, seed: int) -> Result:
        """One run, under the label."""
        return replace(run(self.sees(problem), self.method, seed, self.setting), method=self.label)


def as_it_ships() -> Setting:
    """The default settings: early looks and several probes at once."""
    search = Search()
    return Setting(early_look=search.early_look, parallel=search.parallel)


def one_type(problem: Problem) -> Problem:
    """CherryPick's space in Fig. 18: the optimal type alone."""
    return favoured(problem, 1)


def better_half(problem: Problem) -> Problem:
    """CherryPick's space in Fig. 14: without the worse half of the types."""
    return favoured(problem, (len(problem.space.offers) + 1) // 2)


HETERBO = Named("heterbo", "heterbo")
NET_VALUE = Named("net-value", "net-value")
SHIPPED = Named("net-value, as it ships", "net-value", as_it_ships())
CONVBO = Named("convbo", "convbo")
OPT = Optimum()
OURS = (HETERBO.label, NET_VALUE.label)
"""Claims about HeterBO are tested on the paper's method and on ours, both with whole probes, one at a time."""
BEYOND = (*OURS, SHIPPED.label, OPT.label)
"""If the paper states a factor: also ours with default settings, and the best possible."""
