"""The stage planning problem: choose one allocation for each stage; and the plan of a choice.

Wu et al. (CE-scaling, IPDPS 2023), section III-C: T = sum r_i t'(theta_i) and C = sum q_i r_i c'(theta_i), one theta_i
from the Pareto boundary for each stage. Trials that cannot all run at once run in waves: t' counts once for each wave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlcd.core.configuration import Floats
from mlcd.core.errors import UserError
from mlcd.core.units import format_duration
from mlcd.planners.functions.epoch_model.boundary import Boundary, boundary, waves
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import FunctionsTask, Planned, Stage, StagePlan
from mlcd.planners.functions.space import why_nothing_fits


@dataclass(frozen=True, eq=False)
class Menu:
    """The options of a stage: for each point of the boundary, seconds and dollars of the whole stage."""

    stage: Stage
    boundary: Boundary
    seconds: Floats
    usd: Floats

    def __len__(self) -> int:
        return len(self.seconds)

    def planned(self, point: int) -> Planned:
        """The stage with the allocation of that point."""
        return Planned(self.stage, self.boundary.allocation(point), float(self.seconds[point]), float(self.usd[point]))


def as_plan(method: str, menus: Sequence[Menu], points: Sequence[int]) -> StagePlan:
    """The plan that takes this point of each menu."""
    return StagePlan(method, tuple(menu.planned(point) for menu, point in zip(menus, points, strict=True)))


@dataclass(frozen=True, eq=False)
class StageProblem:
    """The stages to plan, the model of an epoch, and the allowed allocations."""

    model: EpochModel
    limits: FunctionsTask
    stages: tuple[Stage, ...]

    @cached_property
    def menus(self) -> tuple[Menu, ...]:
        """The options of each stage, seconds rising and dollars falling."""
        trials = dict.fromkeys(map(self._boundary_key, self.stages))
        boundaries = {each: boundary(self.model, self.limits, trials=each) for each in trials}
        pairs = [(stage, boundaries[self._boundary_key(stage)]) for stage in self.stages]
        return tuple(_menu(stage, points, points.seconds) for stage, points in pairs)

    @cached_property
    def static_menus(self) -> list[tuple[Menu, ...]]:
        """For each boundary the options of all stages on it: a point is the same allocation in all of these menus."""
        boundaries = {self._boundary_key(menu.stage): menu.boundary for menu in self.menus}
        return [self._on(points) for points in boundaries.values()]

    @property
    def _all_at_once(self) -> bool:
        """Whether all trials of a stage always run at once."""
        return self.limits.concurrency is None and self.limits.memory_at_once_mb is None

    def _boundary_key(self, stage: Stage) -> int:
        """Equal for stages with the same boundary."""
        return 1 if self._all_at_once else stage.trials

    def _on(self, points: Boundary) -> tuple[Menu, ...]:
        """The options of all stages on the boundary of one of them, each with its own number of waves."""
        if self._all_at_once:
            return self.menus
        trials = {stage.trials for stage in self.stages}
        times = {each: waves(self.limits, points.functions, points.memory_mb, each) for each in trials}
        return tuple(_menu(stage, points, points.cold_s * times[stage.trials]) for stage in self.stages)


def _menu(stage: Stage, points: Boundary, epoch_s: Floats) -> Menu:
    return Menu(stage, points, stage.epochs * epoch_s, stage.trials * stage.epochs * points.usd)


class NoAllocation(UserError):
    """No allocation is possible for the job; the message says why, and what to allow."""


def fastest(problem: StageProblem) -> StagePlan:
    """The plan with the least time in every stage."""
    return as_plan("fastest", _menus(problem), [0] * len(problem.stages))


def cheapest(problem: StageProblem) -> StagePlan:
    """The plan with the least dollars in every stage."""
    menus = _menus(problem)
    return as_plan("cheapest", menus, [len(menu) - 1 for menu in menus])


def _menus(problem: StageProblem) -> tuple[Menu, ...]:
    if all(len(menu) for menu in problem.menus):
        return problem.menus
    workload, limits = problem.model.workload, problem.limits
    if any(problem.model.exists(name) for name in limits.storages):
        longer = f"an epoch takes longer than a call may, {format_duration(limits.call_s)}, on every allocation"
        raise NoAllocation(why_nothing_fits(limits) or f"{longer}: allow more functions or more memory")
    raise NoAllocation(
        f"none of {', '.join(limits.storages)} can hold a model of {workload.model_mb:g} MB: allow another storage"
    )
