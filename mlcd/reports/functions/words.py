"""Sentences about training and tuning on functions: plans, decisions, and the results of launches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import counted, format_count, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import (
    Calibration,
    Epoch,
    FunctionsTask,
    StagePlan,
    allocation_of,
    evidence_of,
    plan_of,
    work_of,
)

METHODS = {
    "fixed": "even split (fixed)",
    "lambdaml": "static (LambdaML)",
    "siren": "Siren",
    "cirrus": "Cirrus",
    "greedy": "greedy",
    "exact": "exact",
}
"""The compared methods, in this order, with their names."""
ROUNDING = 1 + 1e-9


def plan_name(method: str) -> str:
    """'even split (fixed)' for 'fixed'; an unknown method keeps its own name."""
    return METHODS.get(method, method)


def compared_methods() -> list[str]:
    """The installed methods; only these were asked for a plan."""
    from mlcd.planners.functions.decide import METHODS as INSTALLED  # slow to import, and only needed for plans

    return [name for name in METHODS if name in INSTALLED]


def chosen_plan(decision: Decision) -> StagePlan | None:
    """The chosen plan; None if none was chosen: then there may be plans of other methods."""
    return plan_of(decision).plans[0] if decision.configuration is not None and plan_of(decision).plans else None


def is_training(plan: StagePlan) -> bool:
    """Whether the plan is for training one model, not for a hyperparameter search."""
    return all(each.stage.trials == 1 for each in plan.stages)


def size_words(plan: StagePlan) -> str:
    """'14 stages'; for training '60 epochs on 8 x 512 MB, s3', or '60 epochs, the first on 8 x 512 MB, s3'."""
    if len(plan.stages) > 1 and is_training(plan):
        epochs = sum(each.stage.epochs for each in plan.stages)
        return f"{counted(epochs, 'epoch')}, the first on {plan.stages[0].allocation}"
    if len(plan.stages) > 1:
        return f"{len(plan.stages)} stages"
    (only,) = plan.stages
    return f"{counted(only.stage.epochs, 'epoch')} on {only.allocation}"


def decision_sentence(decision: Decision, job: Job) -> str:
    """The decision, or the limit that cannot be kept and what would be enough.

    'exact plan: 14 stages, 23 m, $47.10 of $50.00; the even split would take 1 h 10 m; certified within the limit'.
    """
    plan, goal = chosen_plan(decision), job.goal
    if plan is not None:
        time, cost = format_duration(plan.seconds), format_usd(plan.usd)
        time += f" of {format_duration(goal.deadline_s)}" if goal.deadline_s is not None else ""
        cost += f" of {format_usd(goal.budget_usd)}" if goal.budget_usd is not None else ""
        words = (
            f"{plan.method} plan: {size_words(plan)}, {time}, {cost}{_comparison(plan, plan_of(decision).plans, goal)}"
        )
        return f"{words}; {_certificate(decision, goal)}"
    if decision.configuration is not None:
        return f"{decision.configuration}: {decision.because}"
    words = f"cannot be done: {_binding(decision, goal)}"
    return f"{words}; {_needs_words(decision)}" if decision.relaxations else words


def _needs_words(decision: Decision) -> str:
    """'the fastest possible takes 9 m on 40 x 1769 MB, s3', 'needs $131.20 (10 x 512 MB, s3), or $9 and 2 h (...)'."""
    least, plans = decision.relaxations[0], plan_of(decision).plans
    where = f"{'beginning with' if plans and len(plans[0].stages) > 1 else 'on'} {_allocation_words(least)}"
    if decision.binding == "the deadline" and least.deadline_s is not None and least.budget_usd is None:
        return f"the fastest possible takes {format_duration(least.deadline_s)}, {where}"
    if decision.binding == "the budget" and least.budget_usd is not None and least.deadline_s is None:
        return f"the cheapest possible costs {format_usd(least.budget_usd)}, {where}"
    return f"needs {', or '.join(f'{_limits_words(way)} ({_allocation_words(way)})' for way in decision.relaxations)}"


def basis_words(calibration: Calibration | None, provenance: Provenance = Provenance.LIVE) -> str:
    """Where the numbers of a plan come from."""
    if calibration is None:
        return "predicted"
    if calibration.modelled:
        return "modelled from published figures, not measured"
    return f"predicted from a calibration, {_measured(provenance)}"


def source_words(calibration: Calibration, provenance: Provenance = Provenance.LIVE) -> str:
    """'measured (8 probes), spread 3.0 %'."""
    words = "modelled, not measured" if calibration.modelled else _measured(provenance)
    words += f" ({calibration.source})" if calibration.source else ""
    return f"{words}, spread {100 * calibration.rel_error:.1f} %" if calibration.rel_error else words


def stage_number(task: FunctionsTask, done: int) -> int:
    """The stage, from 1, of trials with so many epochs behind them."""
    each = task.tuning.epochs_per_stage if task.tuning is not None else 1
    return done // each + 1


def work_words(task: FunctionsTask, launch: Launch) -> str:
    """'stage 3 of 14: 4,096 trials on 8 x 512 MB, s3', 'epoch 7 on 8 x 512 MB, s3', 'epochs 7 to 9 on ...'."""
    where, work = str(allocation_of(launch.configuration) or launch.configuration), work_of(launch)
    if work is None or launch.purpose is Purpose.PROBE:
        return where
    if task.tuning is not None:
        of = f"stage {stage_number(task, work.done)} of {len(task.tuning.stages)}"
        return f"{of}: {counted(len(work.trials), 'trial')} on {where}"
    first, last = work.done + 1, work.done + work.epochs
    return f"epoch {first} on {where}" if first == last else f"epochs {first} to {last} on {where}"


def progress_words(task: FunctionsTask, launch: Launch, epochs: Sequence[Epoch], elapsed_s: float) -> str:
    """'stage 3 of 14: 4,096 trials on 8 x 512 MB, s3  120 of 8,192 epochs, best loss 0.61, 40 s, $1.20 ...'."""
    words, work = work_words(task, launch), work_of(launch)
    if launch.purpose is Purpose.PROBE or work is None:
        what = "sampling" if work is not None else "calibrating"
        return f"{words}  {what}, {format_duration(elapsed_s)}"
    whole = work.epochs * len(work.trials)
    parts = [f"{len(epochs):,} of {counted(whole, 'epoch')}"] if whole > 1 else []
    parts += [f"best loss {best_epoch(epochs).loss:.4g}"] if epochs else []
    parts.append(format_duration(elapsed_s))
    if epochs:
        parts.append(format_usd(sum(epoch.usd for epoch in epochs)))
        left = elapsed_s * (whole - len(epochs)) / len(epochs)
        parts += [f"about {format_duration(left)} left"] if left > 0 else []
    return f"{words}  {', '.join(parts)}"


def result_words(m: Measurement) -> str:
    """The result of a launch, or why it failed: '0.0812 s/MB at 512 MB, an exchange 120 ms, start 1.2 s'."""
    evidence, calibrated, words = evidence_of(m), evidence_of(m).calibrated, []
    if calibrated is not None:
        compute = f"{calibrated.s_per_mb:.3g} s/MB at {calibrated.allocation.memory_mb:,} MB"
        words.append(f"{compute}, an exchange {short_s(calibrated.sync_s)}, start {short_s(calibrated.start_s)}")
    words += [_losses_words(evidence.epochs)] if evidence.epochs else []
    if m.outcome is not Outcome.OK or not words:
        words.append(m.ending)
    return ", ".join(words)


def _losses_words(epochs: Sequence[Epoch]) -> str:
    """'epoch 7: loss 0.6812 (start 1 s, load 2 s, compute 20 s, sync 3 s)', 'best loss 0.61 of 16 trials (trial 3)'."""
    retries = sum(epoch.retries for epoch in epochs)
    again = f", {counted(retries, 'retry')}" if retries else ""
    trials, last = {epoch.trial for epoch in epochs}, max(epochs, key=lambda epoch: epoch.number)
    if len(trials) == 1:
        parts = {"start": last.start_s, "load": last.load_s, "compute": last.compute_s, "sync": last.sync_s}
        took = ", ".join(f"{name} {short_s(seconds)}" for name, seconds in parts.items())
        return f"epoch {last.number}: loss {last.loss:.4g} ({took}){again}"
    best = best_epoch(epochs)
    return f"best loss {best.loss:.4g} of {counted(len(trials), 'trial')} (trial {best.trial}){again}"


def best_epoch(epochs: Sequence[Epoch]) -> Epoch:
    """The best of all trials' last epochs; a loss that is not a number is the worst."""
    last: dict[int, Epoch] = {}
    for epoch in epochs:
        if epoch.trial not in last or epoch.number >= last[epoch.trial].number:
            last[epoch.trial] = epoch
    return min(last.values(), key=lambda e: (e.loss if math.isfinite(e.loss) else math.inf, e.trial))


def workload_words(task: FunctionsTask) -> str:
    """'lr on higgs (11M samples, 2,520 MB), 16,384 trials in 14 stages'."""
    work, tuning = task.workload, task.tuning
    words = f"{work.model} on {work.data} ({format_count(work.samples)} samples, {format_rate(work.data_mb)} MB)"
    if tuning is None:
        return words
    return f"{words}, {counted(tuning.trials, 'trial')} in {counted(len(tuning.stages), 'stage')}"


def short_s(seconds: float) -> str:
    """'120 ms', '1.2 s', '34 s', '2 m 5 s': short times with two or three digits."""
    if seconds < 0.9995:
        return f"{1_000 * seconds:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else format_duration(seconds)


def _measured(provenance: Provenance) -> str:
    return "measured" if provenance is Provenance.LIVE else f"{provenance}, not measured"


def _comparison(plan: StagePlan, plans: Sequence[StagePlan], goal: Goal) -> str:
    """The time or cost of another plan: of a better one, or else of the even split.

    The exact method reserves a part of the limit for more epochs than are expected, so another plan may look faster:
    then this says so instead. Without a limit nothing is reserved, but another plan may still be slightly better: the
    exact method chooses allocations for epochs whose functions are called ahead, which the first ones are not.
    """
    exact_training = plan.method == "exact" and is_training(plan)
    if exact_training and goal.limited:
        return "; the rest is reserved for more epochs than expected"
    best = min(plans, key=lambda each: _objective_value(each, goal))
    if _objective_value(best, goal) * ROUNDING < _objective_value(plan, goal):
        return f"; the {plan_name(best.method)} plan would {_takes(best, goal)}"
    if exact_training or plan.method == "fixed":
        return ""
    even = next((each for each in plans if each.method == "fixed"), None)
    if even is None:
        cannot = goal.limited and len(plans) > 1 and "fixed" in compared_methods()
        return "; the even split cannot keep the limit" if cannot else ""
    return f"; the even split would {_takes(even, goal)}"


def _objective_value(plan: StagePlan, goal: Goal) -> float:
    return plan.usd if goal.objective is Objective.CHEAPEST else plan.seconds


def _takes(plan: StagePlan, goal: Goal) -> str:
    cheap = goal.objective is Objective.CHEAPEST
    return f"cost {format_usd(plan.usd)}" if cheap else f"take {format_duration(plan.seconds)}"


def _certificate(decision: Decision, goal: Goal) -> str:
    if not goal.limited:
        return "no limit to break"
    if decision.certified:
        return "certified within the limit"
    calibration = plan_of(decision).calibration
    modelled = calibration is not None and calibration.modelled
    return "not certified: nothing was measured" if modelled else "not certified"


def _binding(decision: Decision, goal: Goal) -> str:
    """'the deadline (2 m)'."""
    binding = decision.binding or decision.because
    budget, deadline = goal.budget_usd, goal.deadline_s
    words = [format_usd(budget)] if budget is not None and "the budget" in binding else []
    words += [format_duration(deadline)] if deadline is not None and "the deadline" in binding else []
    return f"{binding} ({' / '.join(words)})" if words else binding


def _limits_words(way: Relaxation) -> str:
    """'$131.20', '9 h 20 m', or both."""
    words = [format_usd(way.budget_usd)] if way.budget_usd is not None else []
    words += [format_duration(way.deadline_s)] if way.deadline_s is not None else []
    return " and ".join(words)


def _allocation_words(way: Relaxation) -> str:
    """The first allocation of the plan with the relaxed limits."""
    configuration = way.configuration
    return str(allocation_of(configuration) or configuration) if configuration is not None else "any allocation"
