"""Which allocation for which stage: what there is to choose from, and the plan that a choice comes to.

Wu et al. (CE-scaling, IPDPS 2023), section III-C: T = sum r_i t'(theta_i) and C = sum q_i r_i c'(theta_i), one theta_i
from the Pareto boundary for each stage. Trials that do not fit at once wait for each other: t' counts once for each of
their waves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Goal
from mlcd.planners.functions.beliefs.boundary import Boundary, boundary, waves
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.nouns import FunctionsTask, Planned, Stage, StagePlan

Storages = tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Menu:
    """A stage with what may be allocated to its trials: seconds and dollars of the whole stage for each point."""

    stage: Stage
    boundary: Boundary
    seconds: Floats
    usd: Floats

    def __len__(self) -> int:
        return len(self.seconds)

    def planned(self, point: int) -> Planned:
        """The stage on that point."""
        return Planned(self.stage, self.boundary.allocation(point), float(self.seconds[point]), float(self.usd[point]))


def as_plan(method: str, menus: Sequence[Menu], points: Sequence[int]) -> StagePlan:
    """The plan that takes this point of each menu."""
    return StagePlan(method, tuple(menu.planned(point) for menu, point in zip(menus, points, strict=True)))


def keeps(plan: StagePlan, goal: Goal) -> bool:
    """Whether it is within both limits, to the last bit."""
    too_dear = goal.budget_usd is not None and plan.usd > goal.budget_usd
    too_slow = goal.deadline_s is not None and plan.seconds > goal.deadline_s
    return not too_dear and not too_slow


@dataclass(frozen=True, eq=False)
class StageProblem:
    """Stages, what is known of an epoch of theirs, and between which ends they may be allocated."""

    model: EpochModel
    limits: FunctionsTask
    stages: tuple[Stage, ...]
    _menus: dict[Storages, tuple[Menu, ...]] = field(default_factory=dict, init=False, repr=False)
    _static: dict[Storages, list[tuple[Menu, ...]]] = field(default_factory=dict, init=False, repr=False)

    def menus(self, storages: Storages = None) -> tuple[Menu, ...]:
        """One for each stage, seconds rising and dollars falling; on these storages only, where some are named."""
        if storages not in self._menus:
            self._menus[storages] = self._make(storages)
        return self._menus[storages]

    def static_menus(self, storages: Storages = None) -> list[tuple[Menu, ...]]:
        """For each boundary, all stages on it: the same point of each of these menus is the same allocation."""
        if storages not in self._static:
            boundaries = {self._alike(menu.stage): menu.boundary for menu in self.menus(storages)}
            self._static[storages] = [self._on(points, storages) for points in boundaries.values()]
        return self._static[storages]

    @property
    def _all_at_once(self) -> bool:
        """Whether no trial ever waits for another."""
        return self.limits.concurrency is None and self.limits.memory_at_once_mb is None

    def _alike(self, stage: Stage) -> int:
        """The same for stages that have the same boundary."""
        return 1 if self._all_at_once else stage.trials

    def _make(self, storages: Storages) -> tuple[Menu, ...]:
        boundaries: dict[int, Boundary] = {}
        for stage in self.stages:
            trials = self._alike(stage)
            if trials not in boundaries:
                boundaries[trials] = boundary(self.model, self.limits, stage=Stage(trials, 1), storages=storages)
        found = [(stage, boundaries[self._alike(stage)]) for stage in self.stages]
        return tuple(_menu(stage, points, points.seconds) for stage, points in found)

    def _on(self, points: Boundary, storages: Storages) -> tuple[Menu, ...]:
        """All stages on the boundary of one: each with its own waves, dear or slow as it may be there."""
        if self._all_at_once:
            return self.menus(storages)
        once_s = np.empty(len(points))
        for place, name in enumerate(points.names):
            here = points.storage == place
            once_s[here] = self.model.seconds(points.functions[here], points.memory_mb[here], name)
        trials = {stage.trials for stage in self.stages}
        times = {each: waves(self.limits, points.functions, points.memory_mb, each) for each in trials}
        return tuple(_menu(stage, points, once_s * times[stage.trials]) for stage in self.stages)


def _menu(stage: Stage, points: Boundary, epoch_s: Floats) -> Menu:
    return Menu(stage, points, stage.epochs * epoch_s, stage.trials * stage.epochs * points.usd)
