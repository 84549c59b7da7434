"""How many epochs a training will take, before it begins: a part of the data is trained, and a curve drawn through it.

The offline estimate of CE-scaling's Algorithm 2, line 4, as LambdaML makes it: by sampling. How often functions meet in
an epoch, and so how far it gets, depends on how many they are; the sample is therefore trained as the functions of the
plan would train all of the data, and again if the plan that follows from it has others.
"""

from __future__ import annotations

import math

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe
from mlcd.core.units import counted, format_count
from mlcd.planners.functions.nouns import SAMPLE, Allocation, FunctionsTask, Stage, StagePlan, TrainEpochs, evidence_of
from mlcd.planners.functions.plans import cheapest, fastest
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.space import configuration, on_functions, usable
from mlcd.planners.functions.workload import MB_PER_VCPU
from mlcd.planners.modeling.loss_curve import fit

SAMPLED_EPOCHS = 8
"""Of the sample, before a curve is drawn through its losses."""
MOST_SAMPLES = 3


def sample(job: Job, problem: StageProblem, history: History, planned: StagePlan | None) -> Probe | None:
    """The sample that is still missing. `planned`: what would be done by what is known now."""
    task, seen = on_functions(job), _samples(history)
    if task.tuning is not None or task.epochs is not None or job.target is None:
        return None
    if not seen:
        ends = [plan(problem).stages[0].allocation.functions for plan in (cheapest, fastest)]
        return _probe(task, max(1, round(math.sqrt(ends[0] * ends[1]))))
    again = planned.stages[0].allocation.functions if planned is not None else None
    if again is None or len(seen) >= MOST_SAMPLES or again in {functions for functions, _ in seen} or not seen[-1][1]:
        return None
    return _probe(task, again)


def expected_epochs(job: Job, history: History) -> float:
    """What the target is to take: as the job says, or from the last sample; else all the epochs that there may be."""
    task = on_functions(job)
    most = max(1.0, job.work_samples / task.workload.samples)
    if task.epochs is not None:
        return min(most, task.epochs)
    curve = fit(_losses(history)) if job.target is not None else None
    if job.target is None or curve is None:
        return most
    return min(most, curve.epochs_to(job.target.value).expected)


def expected_stage(job: Job, history: History) -> Stage:
    """All the epochs that training is expected to take, as one stage."""
    return Stage(1, max(1, math.ceil(expected_epochs(job, history))))


def out_of_reach(job: Job, history: History) -> str | None:
    """Why the target is not worth beginning for, where even the lucky end of the sample's curve never gets there."""
    losses = _losses(history)
    curve = fit(losses) if losses and job.target is not None else None
    if job.target is None or curve is None:
        return None
    most = job.work_samples / on_functions(job).workload.samples
    if curve.epochs_to(job.target.value).low <= most:
        return None
    return (
        f"the target {job.target}: the sample came down to {min(losses):.4g} in {len(losses)} epochs and tends to "
        f"{curve.floor:.4g}; {counted(round(most), 'epoch')} will not do"
    )


def _samples(history: History) -> list[tuple[int, list[float]]]:
    """For each sample, as how many functions it was trained, and its losses."""
    shown = [evidence_of(m) for m in history.measurements]
    return [
        (each.work.sample_of, [epoch.loss for epoch in each.epochs])
        for each in shown
        if each.work is not None and each.work.sample_of is not None
    ]


def _losses(history: History) -> list[float]:
    """Of the last sample that has any."""
    return next((losses for _, losses in reversed(_samples(history)) if losses), [])


def _probe(task: FunctionsTask, functions: int) -> Probe:
    part, all_of_them = format_count(task.workload.samples * SAMPLE), f"as {functions} functions would train all"
    because = f"how many epochs it takes: {part} samples, trained {all_of_them}"
    return Probe(_sampled_on(task), because, work=TrainEpochs(SAMPLED_EPOCHS, sample_of=functions))


def _sampled_on(task: FunctionsTask) -> Configuration:
    """One function, alone: nothing is exchanged."""
    low, high = task.memory_mb
    where = Allocation(1, min(high, max(low, MB_PER_VCPU)), usable(task)[0])
    return configuration(task, where, TrainEpochs(SAMPLED_EPOCHS))
