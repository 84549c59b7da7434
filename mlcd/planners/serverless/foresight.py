"""From a calibration to a decision: every method's plan under the limits, the chosen one first, and what it promises.

A plan is certified if it keeps the limits even when every stage takes as much more than planned as the calibration's
spread allows for. Where no plan keeps them, the decision names the limit and the least that would have been enough.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp

from mlcd.decision import Decision, Forecast, Relaxation
from mlcd.guarantee import fits
from mlcd.history import History
from mlcd.job import Goal
from mlcd.measurement import Z
from mlcd.planners.serverless.plans import PLANNERS, cheapest, fastest
from mlcd.planners.serverless.problem import StageProblem
from mlcd.planners.serverless.space import configuration
from mlcd.serverless import Calibration, Plan, Work
from mlcd.units import format_duration, format_usd

LEAST_SPREAD = 0.05
"""Relative error that is assumed of every plan: a calibration of seconds has not seen what an hour brings."""
SLOWEST, GRACE_S = 4.0, 30.0
"""A launch is given up once it has taken so many times what was planned for it, and so much longer."""


def spread(calibration: Calibration) -> float:
    """How much longer than planned, at the worst, everything is counted on to take: a factor.

    What was never measured has none: a plan that rests on it is an outlook, and promises nothing.
    """
    if calibration.modelled:
        return 1.0
    return exp(Z * max(calibration.rel_error, LEAST_SPREAD / Z))


def patience_s(planned_s: float) -> float:
    """How long a launch may take, whatever the limits: a short one may still wait for its functions to be up."""
    return SLOWEST * planned_s + GRACE_S


def left_of(goal: Goal, history: History, calibration: Calibration) -> Goal:
    """What a plan may use: what is left of the limits, less what its stages may take beyond their plan."""
    factor = spread(calibration)
    budget = None if goal.budget_usd is None else max(0.0, goal.budget_usd - history.spent_usd) / factor
    deadline = None if goal.deadline_s is None else max(0.0, goal.deadline_s - history.elapsed_s) / factor
    return replace(goal, budget_usd=budget, deadline_s=deadline)


def planned(problem: StageProblem, goal: Goal, method: str) -> Plan | None:
    """The plan of a method; in the middle of a run one that a baseline cannot make is made exactly."""
    return PLANNERS[method](problem, goal) or PLANNERS["exact"](problem, goal)


def decide(
    problem: StageProblem,
    goal: Goal,
    history: History,
    calibration: Calibration,
    method: str,
    steered: Plan | None = None,
) -> Decision:
    """The plan of the method under what is left of the limits, beside those of the others.

    `steered`: how a training run would begin, which knows that its epochs are only expected.
    """
    left = left_of(goal, history, calibration)
    found = {name: planner(problem, left) for name, planner in PLANNERS.items()}
    chosen = found.pop(method)
    others = tuple(plan for plan in found.values() if plan is not None)
    if chosen is None:
        return replace(_infeasible(problem, goal, history, calibration), plans=others, calibration=calibration)
    chosen, factor = steered or chosen, spread(calibration)
    forecast = Forecast(chosen.seconds, chosen.usd, chosen.seconds * factor, chosen.usd * factor)
    kept = fits(goal, history.spent_usd + forecast.worst_usd, history.elapsed_s + forecast.worst_seconds)
    first = chosen.stages[0]
    return Decision(
        configuration(problem.limits, first.allocation, Work(first.stage.epochs, 0, tuple(range(first.stage.trials)))),
        f"{method} plan of {len(chosen.stages)} stages" if len(chosen.stages) > 1 else f"{method} plan",
        certified=kept and not calibration.modelled,
        forecast=forecast,
        plans=(chosen, *others),
        calibration=calibration,
    )


def _infeasible(problem: StageProblem, goal: Goal, history: History, calibration: Calibration) -> Decision:
    """Which limit it is, and the ends of what is possible: the fastest plan, and the cheapest."""
    factor = spread(calibration)
    quick, cheap = fastest(problem), cheapest(problem)
    needs_s = history.elapsed_s + quick.seconds * factor
    needs_usd = history.spent_usd + cheap.usd * factor
    over_time = goal.deadline_s is not None and needs_s > goal.deadline_s
    over_budget = goal.budget_usd is not None and needs_usd > goal.budget_usd
    ways = []
    if over_time == over_budget:  # each could be kept alone, or neither: the cheapest plan that is in time, or the ends
        binding = "the budget and the deadline together"
        in_time = replace(left_of(goal, history, calibration), budget_usd=None)
        dearer = PLANNERS["exact"](problem, in_time)
        if dearer is not None:
            ways.append(_relaxed(problem, dearer, usd=history.spent_usd + dearer.usd * factor))
        ways.append(
            _relaxed(problem, cheap, needs_usd if over_budget else None, history.elapsed_s + cheap.seconds * factor)
        )
    elif over_time:
        binding = "the deadline"
        ways.append(_relaxed(problem, quick, seconds=needs_s))
    else:
        binding = "the budget"
        ways.append(_relaxed(problem, cheap, usd=needs_usd))
    ends = f"the fastest plan takes {_told(quick)}, the cheapest {_told(cheap)}"
    return Decision(None, f"no plan keeps the limits: {ends}", binding=binding, relaxations=tuple(ways))


def _relaxed(problem: StageProblem, plan: Plan, usd: float | None = None, seconds: float | None = None) -> Relaxation:
    return Relaxation(usd, seconds, configuration(problem.limits, plan.stages[0].allocation, Work(1)))


def _told(plan: Plan) -> str:
    return f"{format_duration(plan.seconds)} and {format_usd(plan.usd)}"
