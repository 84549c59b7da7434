"""The planners of stages by their names, and the two ends of what any of them can do."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.core.errors import UserError
from mlcd.core.job import Goal
from mlcd.core.units import format_duration
from mlcd.planners.functions.cirrus import cirrus
from mlcd.planners.functions.exact import exact
from mlcd.planners.functions.fixed import fixed
from mlcd.planners.functions.greedy import greedy
from mlcd.planners.functions.nouns import StagePlan
from mlcd.planners.functions.problem import Menu, StageProblem, as_plan
from mlcd.planners.functions.siren import siren
from mlcd.planners.functions.space import nothing_fits
from mlcd.planners.functions.static import lambdaml

Planner = Callable[[StageProblem, Goal], StagePlan | None]
"""None: no plan of that method keeps the limits."""

PLANNERS: dict[str, Planner] = {
    "exact": exact,
    "greedy": greedy,
    "lambdaml": lambdaml,
    "siren": siren,
    "cirrus": cirrus,
    "fixed": fixed,
}


class NothingToChoose(UserError):
    """Not one allocation exists for the job; the message says why, and what to allow."""


def fastest(problem: StageProblem) -> StagePlan:
    """The least time for every stage, whatever it costs."""
    return as_plan("fastest", _menus(problem), [0] * len(problem.stages))


def cheapest(problem: StageProblem) -> StagePlan:
    """The least dollars for every stage, however long it takes."""
    menus = _menus(problem)
    return as_plan("cheapest", menus, [len(menu) - 1 for menu in menus])


def _menus(problem: StageProblem) -> tuple[Menu, ...]:
    menus = problem.menus()
    if all(len(menu) for menu in menus):
        return menus
    workload, limits = problem.model.workload, problem.limits
    if any(problem.model.exists(name) for name in limits.storages):
        longer = f"an epoch takes longer than a call may, {format_duration(limits.call_s)}, on every allocation"
        raise NothingToChoose(nothing_fits(limits) or f"{longer}: allow more functions or more memory")
    raise NothingToChoose(
        f"none of {', '.join(limits.storages)} can hold a model of {workload.model_mb:g} MB: allow another storage"
    )
