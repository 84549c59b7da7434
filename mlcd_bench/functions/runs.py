"""Results of a method on a job under a limit, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from mlcd_bench.functions.limits import BUDGET, Limit

TUNING, TRAINING = "tuning", "training"
PHASES = (TUNING, TRAINING)


@dataclass(frozen=True, slots=True)
class Run:
    """The row that `mlcd bench functions -o json` prints. Hours and dollars are None without a plan.

    `limit` is in dollars or in hours. `violated`: the limit was exceeded or, in training, the target was not
    reached within it; of several seeds, by at least one.
    """

    job: str
    phase: str
    limit_kind: str
    limit: float
    method: str
    hours: float | None
    usd: float | None
    violated: bool
    planning_ms: float

    @classmethod
    def of(
        cls,
        job: str,
        phase: str,
        limit: Limit,
        method: str,
        *,
        hours: float | None = None,
        usd: float | None = None,
        violated: bool = False,
        planning_ms: float = 0.0,
    ) -> Run:
        """A run under this limit; without hours and dollars, one without a plan."""
        return cls(job, phase, limit.kind, limit.value, method, hours, usd, violated, planning_ms)

    @property
    def objective(self) -> float | None:
        """The minimised quantity: hours within a budget, dollars within a deadline."""
        return self.hours if self.limit_kind == BUDGET else self.usd

    @property
    def over(self) -> bool:
        """Whether the limit itself was exceeded."""
        limit = Limit(self.limit_kind, self.limit)
        return self.hours is not None and self.usd is not None and limit.broken(self.hours, self.usd)


Case = list[Run]
"""The runs of all methods on one job under one limit; for training, with one seed or with all."""


def cases(runs: Sequence[Run]) -> list[Case]:
    """Runs grouped by what can be compared with each other."""
    by_case: dict[tuple[str, str, str, float], Case] = {}
    for run in runs:
        by_case.setdefault((run.job, run.phase, run.limit_kind, run.limit), []).append(run)
    return list(by_case.values())


def pooled(seeds: Sequence[Sequence[Run]]) -> list[Run]:
    """Runs on several seeds as one row each: means, and whether any of them violated its limit."""
    return [_mean(each) for each in zip(*seeds, strict=True)]


def _mean(runs: Sequence[Run]) -> Run:
    hours, usd = [run.hours for run in runs if run.hours is not None], [run.usd for run in runs if run.usd is not None]
    return replace(
        runs[0],
        hours=fmean(hours) if hours else None,
        usd=fmean(usd) if usd else None,
        violated=any(run.violated for run in runs),
        planning_ms=fmean(run.planning_ms for run in runs),
    )
