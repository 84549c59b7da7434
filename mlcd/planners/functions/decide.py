"""Decide from a calibration: the plan of the chosen method within the limits, the plans of the others, the certificate.

A plan is certified if it keeps the limits even if every stage takes longer than planned by the calibration's spread. If
no plan keeps the limits, the decision names the limit, and the smallest one that would be enough.
"""

from __future__ import annotations

from dataclasses import replace

from mlcd.core.decision import Decision, Forecast, Relaxation
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.plugins import Plugins
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.functions.adaptive import AdaptiveTraining
from mlcd.planners.functions.epoch_model.calibration import spread
from mlcd.planners.functions.exact import exact
from mlcd.planners.functions.nouns import Calibration, FunctionsPlan, StagePlan, TrainEpochs
from mlcd.planners.functions.problem import StageProblem, cheapest, fastest
from mlcd.planners.functions.run_state import limits_left
from mlcd.planners.functions.space import configuration

METHODS: Plugins[type[AdaptiveTraining]] = Plugins("mlcd.methods", "functions", {"exact": AdaptiveTraining})
"""The methods by name: each steers a training run, and plans the stages of a tuning job."""


def plan_by_method(problem: StageProblem, goal: Goal, method: str) -> StagePlan | None:
    """The method's plan; the exact plan if a baseline finds none, so that a running job can go on."""
    return METHODS[method].plan_stages(problem, goal) or exact(problem, goal)


def decide(
    problem: StageProblem,
    goal: Goal,
    history: History,
    calibration: Calibration,
    method: str,
    first_plan: StagePlan | None = None,
) -> Decision:
    """The method's plan within what is left of the limits, with the plans of the other methods.

    `first_plan`: the first plan of a training run, which accounts for the uncertain number of epochs.
    """
    factor = spread(calibration)
    left = limits_left(goal, history, factor)
    plans = {name: each.plan_stages(problem, left) for name, each in METHODS.items()}
    chosen = plans.pop(method)
    others = tuple(plan for plan in plans.values() if plan is not None)
    if chosen is None:
        best = plans.get("exact")
        if best is None:
            none = _infeasible(problem, goal, history, calibration, method)
        else:  # the limits can be kept, but not by this method
            why = f"the method: {method} has no plan for these limits and storages; exact has one, of {_amounts(best)}"
            none = Decision(None, why, binding=why)
        return replace(none, plan=FunctionsPlan(others, calibration))
    chosen = first_plan or chosen
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
    """The limit that cannot be kept, and the smallest value of it that would be enough with the other limit unchanged.

    Computed from plans of the same method, or exact plans if it finds none even without limits.
    """
    quick, cheap = fastest(problem), cheapest(problem)
    factor = spread(calibration)
    left = limits_left(goal, history, factor)
    planner = METHODS[method].plan_stages
    planner = planner if planner(problem, Goal()) is not None else exact
    in_time = planner(problem, replace(left, objective=Objective.CHEAPEST, budget_usd=None))
    in_budget = planner(problem, replace(left, objective=Objective.FASTEST, deadline_s=None))

    def relaxed(plan: StagePlan, *, usd: bool = False, seconds: bool = False) -> Relaxation:
        """The relaxed limit, or both, that this plan needs."""
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
    one = "the budget" if in_budget is None else "the deadline"  # cannot be kept even without the other
    binding = "the budget and the deadline together" if (in_time is None) == (in_budget is None) else one
    ends = f"the fastest plan takes {_amounts(quick)}, the cheapest {_amounts(cheap)}"
    return Decision(None, f"no plan keeps the limits: {ends}", binding=binding, relaxations=tuple(ways))


def _amounts(plan: StagePlan) -> str:
    return f"{format_duration(plan.seconds)} and {format_usd(plan.usd)}"
