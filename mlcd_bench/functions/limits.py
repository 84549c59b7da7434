"""Budgets and deadlines, from tight to loose: multiples of the least that any plan needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.problem import StageProblem, cheapest, fastest

BUDGET, DEADLINE = "budget", "deadline"


@dataclass(frozen=True, slots=True)
class Limit:
    """Least time within a budget in dollars, or least cost within a deadline in hours."""

    kind: str
    value: float

    @property
    def goal(self) -> Goal:
        """As a goal for a planner."""
        if self.kind == BUDGET:
            return Goal(Objective.FASTEST, budget_usd=self.value)
        return Goal(Objective.CHEAPEST, deadline_s=self.value * 3_600)

    def broken(self, hours: float, usd: float) -> bool:
        """Whether these totals exceed it."""
        return (usd if self.kind == BUDGET else hours) > self.value


def limits(problem: StageProblem, factors: Sequence[float]) -> list[Limit]:
    """Budgets as multiples of the cheapest plan's cost, then deadlines as multiples of the fastest plan's time."""
    usd, hours = cheapest(problem).usd, fastest(problem).seconds / 3_600
    budgets = [Limit(BUDGET, factor * usd) for factor in factors]
    return budgets + [Limit(DEADLINE, factor * hours) for factor in factors]
