"""Baselines for functions: entry points of `mlcd.methods` that train and plan stages as other systems do.

greedy    CE-scaling as published: one allocation for the expected epochs; a reserve covers the additional epochs that
          delta leaves unnoticed, at their least cost
cirrus    greedy with a parameter server, and without delayed restart: 'modified Cirrus' of CE-scaling, section IV-D
siren     with S3; chooses before every epoch, with more resources for early ones, as siren.py for stages
lambdaml  the first choice, to the end
fixed     an equal share of the limits for each epoch of the estimate. Epochs are alike, so that is lambdaml's
          choice, too; but it continues with less when a share no longer suffices
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import ClassVar

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal, Objective
from mlcd.core.strategy import Apply, Finish
from mlcd.planners.functions.adaptive import AdaptiveTraining, EpochPlan, epochs_left, instead_of
from mlcd.planners.functions.choice import ROUNDING, best_single, most_epochs
from mlcd.planners.functions.epoch_forecast import EpochForecast, forecast_from_estimate, known_epochs
from mlcd.planners.functions.epoch_model.boundary import Boundary
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.functions.run_state import RunState
from mlcd.planners.functions.workload import StorageKind
from mlcd_bench.baselines.functions.greedy import greedy
from mlcd_bench.baselines.functions.siren import EARLY, siren
from mlcd_bench.baselines.functions.static import cirrus, fixed, lambdaml

__all__ = ["Cirrus", "Fixed", "Greedy", "LambdaML", "Siren"]


class _OneAllocation(AdaptiveTraining):
    """The best single allocation for the expected epochs. `kept_back`: additional epochs that are reserved for."""

    calls_ahead: ClassVar[bool] = False
    kept_back: ClassVar[bool] = False

    def _choose(
        self, now: RunState, forecast: EpochForecast, assigned: int = 0, old: Allocation | None = None
    ) -> EpochPlan:
        offered, epochs = now.options, max(1, epochs_left(now, forecast) - assigned)
        more = ceil(now.constants.task.delta * forecast.epochs) if self.kept_back else 0
        single = best_single(offered, epochs, reserved(offered, now.planned, epochs, more))
        option, count = single[0] if single is not None else (most_epochs(offered, now.left), 1)
        return EpochPlan((offered.allocation(option),) * count, forecast, now.planned_factors)


class Greedy(_OneAllocation):
    """CE-scaling: chosen again where line 11 of Algorithm 2 says so, with delayed restart."""

    method: ClassVar[str] = "greedy"
    plan_stages = staticmethod(greedy)
    kept_back: ClassVar[bool] = True

    def _after_epoch(self, now: RunState, plan: EpochPlan, forecast: EpochForecast, why: str) -> EpochPlan:
        if not why:
            return plan
        if now.is_usable(old := plan.allocations[0]) and epochs_left(now, forecast) <= 1:
            return EpochPlan((old,), forecast, now.planned_factors, because=f"{why}: one more on {old}")
        return super()._after_epoch(now, plan, forecast, why)


class Cirrus(_OneAllocation):
    """Chosen again like greedy, with the new allocation at once."""

    method: ClassVar[str] = "cirrus"
    plan_stages = staticmethod(cirrus)
    storages: ClassVar[tuple[str, ...] | None] = (str(StorageKind.VM_PS),)
    kept_back: ClassVar[bool] = True

    def _after_epoch(self, now: RunState, plan: EpochPlan, forecast: EpochForecast, why: str) -> EpochPlan:
        if not why:
            return plan
        chosen = self._choose(now, forecast)
        return replace(chosen, because=f"{why}: {instead_of(chosen.allocations[0], plan.allocations[0])}")


class _FirstChoice(_OneAllocation):
    """Never chosen again."""

    def _forecast(self, now: RunState) -> EpochForecast:
        return known_epochs(now.most) if now.job.target is None else forecast_from_estimate(self.epochs, now.most)

    def _after_epoch(self, now: RunState, plan: EpochPlan, forecast: EpochForecast, why: str) -> EpochPlan:
        return plan


class Fixed(_FirstChoice):
    """If its allocation no longer fits, it continues with one that does."""

    method: ClassVar[str] = "fixed"
    plan_stages = staticmethod(fixed)

    @staticmethod
    def needed(stages: Sequence[float]) -> float:
        """Equal shares must be enough for the stage that needs most."""
        return len(stages) * max(stages)


class LambdaML(_FirstChoice):
    """It ends when its allocation no longer fits, unless that has failed."""

    method: ClassVar[str] = "lambdaml"
    plan_stages = staticmethod(lambdaml)

    def _next_epoch(self, now: RunState) -> Apply | Finish:
        ahead = self._plan_epochs(now).allocations
        if not now.is_within_limits(ahead[0]) and not now.failed_launches:
            return Finish(self._out_of_limits(now, *now.seconds_and_usd(ahead[:1])))
        return super()._next_epoch(now)


class Siren(AdaptiveTraining):
    """The best within each epoch's share: its minimum, plus more of the rest for early epochs. No delayed restart."""

    method: ClassVar[str] = "siren"
    plan_stages = staticmethod(siren)
    storages: ClassVar[tuple[str, ...] | None] = (str(StorageKind.S3),)
    calls_ahead: ClassVar[bool] = False

    def _plan_epochs(self, now: RunState) -> EpochPlan:
        forecast, offered, left = self._forecast(now), now.options, now.planned
        epochs = now.done + epochs_left(now, forecast)
        eager = np.linspace(EARLY, 1.0, epochs)[now.done :]
        patient = np.linspace(1.0, EARLY, epochs)[now.done :]

        def share(limit: float | None, least: float, wish: Floats) -> float | None:
            over = None if limit is None else limit - least * len(wish)
            return None if over is None else least + max(0.0, over) * float(wish[0] / wish.sum())

        cheapest = now.job.goal.objective is Objective.CHEAPEST
        goal = replace(
            left,
            budget_usd=left.budget_usd if cheapest else share(left.budget_usd, float(offered.usd.min()), eager),
            deadline_s=share(left.deadline_s, float(offered.seconds.min()), patient) if cheapest else left.deadline_s,
        )
        single = best_single(offered, 1, goal)
        option = single[0][0] if single else most_epochs(offered, now.left)
        return EpochPlan((offered.allocation(option),), forecast, now.planned_factors)


def reserved(offered: Boundary, goal: Goal, epochs: int, more: int) -> Goal:
    """The limits minus the least that `more` unexpected epochs need, but never so low that no allocation fits."""
    budget, deadline = goal.budget_usd, goal.deadline_s
    if budget is not None:
        least = float(offered.usd.min())
        budget = min(budget, max(budget - more * least, epochs * least * ROUNDING))
    if deadline is not None:
        least = float(offered.seconds.min())
        deadline = min(deadline, max(deadline - more * least, epochs * least * ROUNDING))
    return replace(goal, budget_usd=budget, deadline_s=deadline)
