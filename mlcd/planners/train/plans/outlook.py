"""The forecast of training by a plan before any probe: for each GPU type, the best plan, its time, cost and fit.

Times and costs are predictions of the prior (`belief.py`), of the training steps alone. Loading, checkpoints and
evaluation come on top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.errors import UserError
from mlcd.core.guarantee import limits_allow
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job, Objective
from mlcd.planners.modeling.outlook import LEAST_USD, Chance, Outlook, outlook, usual_probe_limit
from mlcd.planners.modeling.outlook import SHARE as OF_EXPECTED
from mlcd.planners.train.nouns import PlannedTraining, planned_training
from mlcd.planners.train.plans.belief import PlanBelief, ProbeResults, believe_plans, expected_steps
from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd.planners.train.plans.plan_variables import plan_settings
from mlcd.planners.train.plans.run_spec import RunSpec, gpu_of
from mlcd.planners.train.plans.surfaces import promising_plans, run_specs_in
from mlcd.planners.train.screening import subspace

SHARE = 0.9
"""Coverage of the intervals."""
LIKELY, DOUBTFUL = 0.8, 0.2
"""Probability to keep the limits from which they look likely, or at least doubtful, to be kept."""
FAILURE = 0.05
"""A plan that is sure not to fit counts as this much more expensive: of nearly equal plans the surer one wins."""

LARGE = 40_000
"""Larger spaces are screened first: each configuration takes several kB and a tenth of a millisecond."""


@dataclass(frozen=True)
class GpuOutlook:
    """The best plan of a GPU type: time and cost (low end, median, high end), and the probability to fit."""

    gpu: str
    configuration: Configuration
    seconds: tuple[float, float, float]
    usd: tuple[float, float, float]
    chance: float

    @property
    def knobs(self) -> dict[str, str | int]:
        """The fields of the plan by name, as in run documents."""
        return plan_settings(self.configuration)


@dataclass(frozen=True)
class PlanOutlook:
    """The forecast of a job's space before its first probe. `most`: size above which the space is screened."""

    job: Job
    space: Space
    most: int = LARGE

    @cached_property
    def training(self) -> PlannedTraining:
        """The job's training task."""
        training = planned_training(self.job)
        if training is None:
            raise UserError(f"{self.job.name} has no `plan:`, so its plans cannot be forecast")
        return training

    @cached_property
    def considered(self) -> Space:
        """The whole space; if it is large, the configurations of each GPU type that a search would consider."""
        if len(self.space) <= self.most:
            return self.space
        names, found = self._gpus_of(self.space), set[int]()
        for name in np.unique(names):
            own = subspace(self.space, np.flatnonzero(names == name))
            kept = promising_plans(self.training, self.job.goal, own, History(), self.job.work_samples)
            found |= {self.space.index[each] for each in kept.configurations}
        return subspace(self.space, found)

    @cached_property
    def belief(self) -> PlanBelief:
        """The prior over the configurations in `considered`."""
        return believe_plans(self._run_specs, ProbeResults.nothing())

    @property
    def _run_specs(self) -> list[RunSpec]:
        return run_specs_in(self.considered, self.training)

    @cached_property
    def finish_s(self) -> tuple[Floats, Floats, Floats]:
        """Seconds of the whole job on each configuration: low end, median, high end.

        The median is computed exactly, not from samples: the best sampled median of thousands would be the luckiest.
        """
        steps = self.job.work_samples / self.training.global_batch
        low, _, high = self.belief.interval(SHARE)
        return steps * low, steps * expected_steps(self._run_specs), steps * high

    @cached_property
    def fitting_s(self) -> Floats:
        """Median seconds; infinite where the plan is not likely to fit the memory."""
        return np.where(self.belief.chance >= CALLED_FITTING, self.finish_s[1], np.inf)

    @property
    def probe_limit_usd(self) -> float:
        """The default limit for the price of one probe: as for other jobs, by the budget or the cheapest finish."""
        if self.job.goal.budget_usd is not None:
            return usual_probe_limit(self.job, self.space)
        pick = best_of(replace(self.job.goal, objective=Objective.CHEAPEST), self.considered, self.fitting_s)
        expected_usd = float(self.considered.usd(self.fitting_s)[pick]) if pick is not None else 0.0
        return max(OF_EXPECTED * expected_usd, LEAST_USD, float(self.space.probe_usd.min()))

    @cached_property
    def by_gpu(self) -> tuple[GpuOutlook, ...]:
        """The best plan of each GPU type for the job's goal, within the limits if possible; the best type first."""
        return tuple(self._at(name, pick) for name, pick in self._best_of_each)

    @property
    def too_small(self) -> tuple[str, ...]:
        """GPU types on which no plan is likely to fit."""
        names = dict.fromkeys(gpu_of(offer).name for offer in self.space.offers)
        return tuple(name for name in names if name not in {each.gpu for each in self.by_gpu})

    @property
    def of_space(self) -> Outlook:
        """The `Outlook` that every job has: its space, the best configuration, and whether the limits look possible."""
        bare = outlook(replace(self.job, hints=Hints()), self.space)
        if not self._best_of_each:
            because = "no plan is likely to fit the memory of any of these GPUs"
            return replace(bare, chance=Chance.UNLIKELY, because=because)
        _, pick = self._best_of_each[0]
        modelled = float(self.fitting_s[pick]), float(self.considered.usd(self.fitting_s)[pick])
        chance, because = self._chance()
        best = self.considered.configurations[pick]
        return replace(bare, chance=chance, because=because, best=best, modelled=modelled)

    @staticmethod
    def _gpus_of(space: Space) -> NDArray[np.str_]:
        """The name of the GPU of each configuration."""
        return np.array([gpu_of(offer).name for offer in space.offers])[space.offer_index]

    def _at(self, name: str, pick: int) -> GpuOutlook:
        low, middle, high = (float(each[pick]) for each in self.finish_s)
        configuration = self.considered.configurations[pick]
        usd = configuration.usd(low), configuration.usd(middle), configuration.usd(high)
        return GpuOutlook(name, configuration, (low, middle, high), usd, float(self.belief.chance[pick]))

    @cached_property
    def _best_of_each(self) -> list[tuple[str, int]]:
        """GPU type and place of its best plan; the best type first."""
        names, cost_factor = self._gpus_of(self.considered), failure_cost_factor(self.belief.chance)
        left, ordered = dict[int, str](), []
        for name in dict.fromkeys(names):
            pick = best_of(self.job.goal, self.considered, np.where(names == name, self.fitting_s, np.inf), cost_factor)
            if pick is not None:
                left[pick] = str(name)
        while left:
            of_these = np.full(len(self.considered), np.inf)
            of_these[list(left)] = self.fitting_s[list(left)]
            pick = best_of(self.job.goal, self.considered, of_these)
            assert pick is not None, "each of them is likely to fit"
            ordered.append((left.pop(pick), pick))
        return ordered

    def _chance(self) -> tuple[Chance, str]:
        goal = self.job.goal
        if not goal.limited:
            return Chance.NO_LIMIT, "there is no limit to keep"
        finish_s = np.exp(self.belief.log_step_s) * (self.job.work_samples / self.training.global_batch)
        keeps = self.belief.fits & limits_allow(goal, self.considered.usd(finish_s), finish_s)
        share = float(keeps.mean(axis=0).max())
        chance = Chance.LIKELY if share >= LIKELY else Chance.DOUBTFUL if share >= DOUBTFUL else Chance.UNLIKELY
        return chance, f"the plan that keeps the limits most surely does so with a chance of {share:.0%}"


def failure_cost_factor(chance: Floats) -> Floats:
    """Factor on a plan's cost, by its probability to fit: if it does not fit, finding another plan costs something."""
    return 1 + FAILURE * (1 - chance)


def best_of(goal: Goal, space: Space, finish_s: Floats, cost_factor: Floats | float = 1.0) -> int | None:
    """The best configuration within the limits, or of all if none is. `cost_factor`: multiplies each value."""
    if not np.isfinite(finish_s).any():
        return None
    usd = space.usd(finish_s)
    value = finish_s if goal.objective is Objective.FASTEST else space.expected_usd(finish_s, finish_s, goal.deadline_s)
    value, inside = value * cost_factor, limits_allow(goal, usd, finish_s)
    return int(np.argmin(np.where(inside, value, np.inf) if inside.any() else value))
