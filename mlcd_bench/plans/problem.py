"""Problems of a comparison: the measured plans of one model, of which the fastest or cheapest is searched.

cost   of a plan: seconds, or dollars, of one sequence. Plans with different global batches are then
       comparable, since all plans of a problem have sequences of one length
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.errors import UnknownName
from mlcd.planners.train.plans.prior import Prior
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd_bench.plans.folder import PlanRow

PER_HOUR = 3_600


class PlanGoal(StrEnum):
    """What the best plan minimises."""

    FASTEST = "fastest"
    CHEAPEST = "cheapest"


@dataclass(frozen=True)
class PlanProblem:
    """The measured plans of a model, a length of sequences and an adapter in one file.

    `others`: rows of the models that are not hidden. `prior`: learned from them; None for the shipped one.
    """

    rows: tuple[PlanRow, ...]
    goal: PlanGoal
    hidden: tuple[str, ...]
    others: tuple[PlanRow, ...]
    prior: Prior | None = None

    @cached_property
    def candidates(self) -> list[RunSpec]:
        """The run spec of each plan."""
        return [row.spec for row in self.rows]

    @cached_property
    def factor(self) -> Floats:
        """Log of a plan's cost minus log of its step's seconds."""
        return np.array([log_factor(row, self.goal) for row in self.rows])

    @cached_property
    def cost(self) -> Floats:
        """Log cost of each plan; nan if it ran out of memory."""
        return self.factor + np.log([row.step_s or np.nan for row in self.rows])

    @property
    def optimum(self) -> int:
        """The index of the best plan."""
        return int(np.nanargmin(self.cost))


@dataclass(frozen=True)
class Shown:
    """The results of the probes of a run: `tried`, in order, and the log cost of each plan, nan if unknown."""

    tried: tuple[int, ...]
    cost: Floats

    @staticmethod
    def of(problem: PlanProblem, tried: Sequence[int]) -> Shown:
        """The results of these probes."""
        cost = np.full(len(problem.rows), np.nan)
        cost[list(tried)] = problem.cost[list(tried)]
        return Shown(tuple(tried), cost)

    @property
    def ran(self) -> list[int]:
        """The probes that did not run out of memory."""
        return [i for i in self.tried if not np.isnan(self.cost[i])]

    @property
    def failed(self) -> list[int]:
        """Those that did."""
        return [i for i in self.tried if np.isnan(self.cost[i])]

    @property
    def best(self) -> int | None:
        """The cheapest of the probed plans that ran."""
        return min(self.ran, key=lambda i: float(self.cost[i]), default=None)


def log_factor(row: PlanRow, goal: PlanGoal) -> float:
    """Log of a plan's cost minus log of its step's seconds."""
    usd_per_s = row.spec.gpus * row.usd_per_gpu_hour / PER_HOUR
    return float(np.log((usd_per_s if goal is PlanGoal.CHEAPEST else 1.0) / row.spec.global_batch))


def plan_problems(rows: Sequence[PlanRow], unseen: Sequence[str], goals: Sequence[PlanGoal]) -> list[PlanProblem]:
    """A problem for each goal and each set of plans of which one ran. `unseen`: models hidden together; none: one by
    one."""
    models = tuple(dict.fromkeys(row.model for row in rows))
    for name in unseen:
        if name not in models:
            raise UnknownName("measured model", name, models)
    groups: dict[tuple[str, str, int, str], list[PlanRow]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    problems = []
    for (_, model, *_), group in groups.items():
        if (unseen and model not in unseen) or all(row.step_s is None for row in group):
            continue
        hidden = tuple(unseen) or (model,)
        others = tuple(row for row in rows if row.model not in hidden)
        problems += [PlanProblem(tuple(group), goal, hidden, others) for goal in goals]
    return problems
