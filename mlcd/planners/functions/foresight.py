"""From a calibration to a decision: every method's plan under the limits, the chosen one first, and what it promises.

A plan is certified if it keeps the limits even when every stage takes as much more than planned as the calibration's
spread allows for. Where no plan keeps them, the decision names the limit and the least that would have been enough.
"""

from __future__ import annotations

from dataclasses import replace

from mlcd.core.decision import Decision, Forecast, Relaxation
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.plugins import Plugins
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.functions.adaptive import AdaptiveTraining
from mlcd.planners.functions.beliefs.calibration import spread
from mlcd.planners.functions.exact import exact
from mlcd.planners.functions.nouns import Calibration, FunctionsPlan, StagePlan, TrainEpochs
from mlcd.planners.functions.problem import StageProblem, cheapest, fastest
from mlcd.planners.functions.run_state import left_of
from mlcd.planners.functions.space import configuration

METHODS: Plugins[type[AdaptiveTraining]] = Plugins("mlcd.methods", "functions", {"exact": AdaptiveTraining})
"""By name: how a training is steered, and how the stages of a tuning job are planned."""


def planned(problem: StageProblem, goal: Goal, method: str) -> StagePlan | None:
    """The plan of a method; in the middle of a run one that a baseline cannot make is made exactly."""
    return METHODS[method].plan_stages(problem, goal) or exact(problem, goal)


def decide(
    problem: StageProblem,
    goal: Goal,
    history: History,
    calibration: Calibration,
    method: str,
    steered: StagePlan | None = None,
) -> Decision:
    """The plan of the method under what is left of the limits, beside those of the others.

    `steered`: how a training run would begin, which knows that its epochs are only expected.
    """
    factor = spread(calibration)
    left = left_of(goal, history, factor)
    found = {name: each.plan_stages(problem, left) for name, each in METHODS.items()}
    chosen = found.pop(method)
    others = tuple(plan for plan in found.values() if plan is not None)
    if chosen is None:
        best = found.get("exact")
        if best is None:
            why = _infeasible(problem, goal, history, calibration, method)
        else:  # the limits can be kept, but not by this method
            only = f"the method: {method} has no plan for these limits and storages; exact has one, of {_takes(best)}"
            why = Decision(None, only, binding=only)
        return replace(why, plan=FunctionsPlan(others, calibration))
    chosen = steered or chosen
    forecast = Forecast(chosen.seconds, chosen.usd, chosen.seconds * factor, chosen.usd * factor)
    kept = goal.allows(history.spent_usd + forecast.worst_usd, history.elapsed_s + forecast.worst_seconds)
    first = chosen.stages[0]
    work = TrainEpochs(first.stage.epochs, 0, tuple(range(first.stage.trials)))
    return Decision(
        configuration(problem.limits, first.allocation, work),
        f"{method} plan of {len(chosen.stages)} stages" if len(chosen.stages) > 1 else f"{method} plan",
        certified=kept and not calibration.modelled,
        forecast=forecast,
        plan=FunctionsPlan((chosen, *others), calibration),
    )


def _infeasible(problem: StageProblem, goal: Goal, history: History, calibration: Calibration, method: str) -> Decision:
    """Which limit it is, and the least that would be enough of it beside the other one, as it stands.

    By the method's own plans, since it is the one that is asked again; by the exact ones where it never has any.
    """
    quick, cheap = fastest(problem), cheapest(problem)
    factor = spread(calibration)
    left = left_of(goal, history, factor)
    planner = METHODS[method].plan_stages
    planner = planner if planner(problem, Goal()) is not None else exact
    in_time = planner(problem, replace(left, objective=Objective.CHEAPEST, budget_usd=None))
    in_budget = planner(problem, replace(left, objective=Objective.FASTEST, deadline_s=None))

    def relaxed(plan: StagePlan, *, usd: bool = False, seconds: bool = False) -> Relaxation:
        """The limit, or both, as this plan needs it."""
        needed = METHODS[method].needed
        needs_usd = history.spent_usd + factor * needed([each.usd for each in plan.stages])
        needs_s = history.elapsed_s + factor * needed([each.seconds for each in plan.stages])
        where = configuration(problem.limits, plan.stages[0].allocation, TrainEpochs(1))
        return Relaxation(needs_usd if usd else None, needs_s if seconds else None, where)

    ways = []
    if in_time is not None:
        ways.append(relaxed(in_time, usd=True))
    if in_budget is not None:
        ways.append(relaxed(in_budget, seconds=True))
    if not ways:
        ways.append(relaxed(planner(problem, Goal(Objective.CHEAPEST)) or cheap, usd=True, seconds=True))
    one = "the budget" if in_budget is None else "the deadline"  # which cannot be kept even without the other
    binding = "the budget and the deadline together" if (in_time is None) == (in_budget is None) else one
    ends = f"the fastest plan takes {_takes(quick)}, the cheapest {_takes(cheap)}"
    return Decision(None, f"no plan keeps the limits: {ends}", binding=binding, relaxations=tuple(ways))


def _takes(plan: StagePlan) -> str:
    return f"{format_duration(plan.seconds)} and {format_usd(plan.usd)}"
