"""The search of a job on functions: calibrate, estimate the number of epochs if it is unknown, plan.

Wu et al. (CE-scaling, IPDPS 2023), sections III-B and III-C. What the paper takes as constants is measured here, by
probes that are paid from the same budget, and stored for later runs.

The number of epochs is estimated as by LambdaML (Algorithm 2, line 4): a sample of the data is trained, and a curve is
fitted to its losses. How often functions exchange gradients in an epoch, and so its progress, depends on the number of
functions. So the sample is trained as the planned number of functions would train all of the data, and trained again if
the plan that follows from it has another number.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

from mlcd.core.configuration import Space
from mlcd.core.decision import Decision
from mlcd.core.guarantee import why_nothing_was_measured
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.core.units import counted, format_count
from mlcd.planners.functions import stored_calibrations
from mlcd.planners.functions.decide import METHODS, decide
from mlcd.planners.functions.epoch_model.calibration import calibrate
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import (
    SAMPLE_SHARE,
    Allocation,
    Calibration,
    FunctionsPlan,
    FunctionsTask,
    Stage,
    StagePlan,
    TrainEpochs,
    evidence_of,
    functions_task,
)
from mlcd.planners.functions.problem import NoAllocation, StageProblem, cheapest, fastest
from mlcd.planners.functions.space import configuration, tariff_of, usable_storages
from mlcd.planners.functions.workload import MB_PER_VCPU
from mlcd.planners.modeling.loss_curve import fit

SAMPLED_EPOCHS = 8
"""Epochs of the sample that a curve is fitted to."""
MOST_SAMPLES = 3


@dataclass(frozen=True)
class CalibrateAndPlan:
    """Calibrates on the probes of the space, trains samples, and plans by the named method."""

    method: str = "exact"

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next missing probe, or the plan."""
        task = functions_task(job)
        if stored_calibration(task, history) is None:
            for each in space.configurations:
                if each not in history.tried:
                    return Probe(each, f"calibration: {each}")
        calibration = _calibration(task, history)
        if calibration is not None:
            first_plan, problem = self._first_plan(job, calibration, history), _problem(job, calibration, history)
            with suppress(NoAllocation):  # the answer says why
                missing = _sample(job, problem, history, first_plan)
                if missing is not None and missing.configuration not in {r.configuration for r in history.refusals}:
                    return missing
        return self.answer(job, space, history)

    def answer(self, job: Job, space: Space, history: History) -> Finish:
        """The decision from what is known so far."""
        calibration = _calibration(functions_task(job), history)
        if calibration is None:
            failed = next((m for m in history.measurements if evidence_of(m).calibrated is None), None)
            nothing = why_nothing_was_measured(job, space, history)
            binding = f"no probe could calibrate: {failed.ending}" if failed is not None else nothing
            if failed is not None and failed.outcome is Outcome.TIMED_OUT:
                binding += ": use a smaller batch, or allow more memory"
            return Finish("the functions could not be calibrated", decision=Decision(None, binding, binding=binding))
        if (beyond := _out_of_reach(job, history)) is not None:
            return Finish(beyond, decision=Decision(None, beyond, binding=beyond, plan=FunctionsPlan((), calibration)))
        first_plan, problem = self._first_plan(job, calibration, history), _problem(job, calibration, history)
        try:
            decision = decide(problem, job.goal, history, calibration, self.method, first_plan)
        except NoAllocation as why:
            decision = Decision(None, str(why), binding=str(why))
        return Finish(decision.because, decision=decision)

    def _first_plan(self, job: Job, calibration: Calibration, history: History) -> StagePlan | None:
        """The first plan of a training run; None for tuning, which is planned in stages."""
        if functions_task(job).tuning is not None:
            return None
        return METHODS[self.method](calibration, expected_epochs(job, history)).plan(job, history)


def stored_calibration(task: FunctionsTask, history: History) -> Calibration | None:
    """The calibration stored by earlier runs, if it has every storage that this job may use."""
    if history.learned is None:
        return None
    stored = stored_calibrations.from_document(history.learned)
    return stored if set(usable_storages(task)) <= set(stored.links) else None


def measured_calibration(task: FunctionsTask, history: History) -> Calibration | None:
    """The calibration measured by this run's probes."""
    results = [evidence_of(m).calibrated for m in history.measurements]
    probes = [each for each in results if each is not None]
    return calibrate(probes, task.workload) if probes else None


def _calibration(task: FunctionsTask, history: History) -> Calibration | None:
    return stored_calibration(task, history) or measured_calibration(task, history)


def _problem(job: Job, calibration: Calibration, history: History) -> StageProblem:
    """The stages to plan: those of the tuning, or all expected epochs of a training run as one stage."""
    task = functions_task(job)
    whole = Stage(1, max(1, math.ceil(expected_epochs(job, history))))
    stages = task.tuning.stages if task.tuning is not None else (whole,)
    return StageProblem(EpochModel(task.workload, tariff_of(task), calibration), task, stages)


def _sample(job: Job, problem: StageProblem, history: History, planned: StagePlan | None) -> Probe | None:
    """The next sample to train; None if none is needed. `planned`: the plan from what is known so far."""
    task, samples = functions_task(job), _samples(history)
    if task.tuning is not None or task.epochs is not None or job.target is None:
        return None
    if not samples:
        ends = [plan(problem).stages[0].allocation.functions for plan in (cheapest, fastest)]
        return _sample_probe(task, max(1, round(math.sqrt(ends[0] * ends[1]))))
    again = planned.stages[0].allocation.functions if planned is not None else None
    tried, last = {functions for functions, _ in samples}, samples[-1][1]
    if again is None or len(samples) >= MOST_SAMPLES or again in tried or not last:
        return None
    return _sample_probe(task, again)


def expected_epochs(job: Job, history: History) -> float:
    """Epochs to the target: as the job says, else from the last sample, else the most that the job allows."""
    task = functions_task(job)
    most = max(1.0, job.work_samples / task.workload.samples)
    if task.epochs is not None:
        return min(most, task.epochs)
    curve = fit(_sample_losses(history)) if job.target is not None else None
    if job.target is None or curve is None:
        return most
    return min(most, curve.epochs_to(job.target.value).expected)


def _out_of_reach(job: Job, history: History) -> str | None:
    """Why the target is out of reach, if even the optimistic end of the sample's curve misses it; else None."""
    losses = _sample_losses(history)
    curve = fit(losses) if losses and job.target is not None else None
    if job.target is None or curve is None:
        return None
    most = job.work_samples / functions_task(job).workload.samples
    if curve.epochs_to(job.target.value).low <= most:
        return None
    return (
        f"the target {job.target}: the sample's loss fell to {min(losses):.4g} in {len(losses)} epochs and tends to "
        f"{curve.floor:.4g}; {counted(round(most), 'epoch')} will not reach the target"
    )


def _samples(history: History) -> list[tuple[int, list[float]]]:
    """For each sample the number of functions that it stood for, and its losses."""
    evidence = [evidence_of(m) for m in history.measurements]
    return [
        (each.work.sample_of, [epoch.loss for epoch in each.epochs])
        for each in evidence
        if each.work is not None and each.work.sample_of is not None
    ]


def _sample_losses(history: History) -> list[float]:
    """The losses of the last sample that has any."""
    return next((losses for _, losses in reversed(_samples(history)) if losses), [])


def _sample_probe(task: FunctionsTask, functions: int) -> Probe:
    """The probe that trains a sample, on a single function: nothing is exchanged."""
    low, high = task.memory_mb
    where = Allocation(1, min(high, max(low, MB_PER_VCPU)), usable_storages(task)[0])
    part = format_count(task.workload.samples * SAMPLE_SHARE)
    because = f"estimate the epochs: {part} samples, trained as {functions} functions would train all"
    place = configuration(task, where, TrainEpochs(SAMPLED_EPOCHS))
    return Probe(place, because, work=TrainEpochs(SAMPLED_EPOCHS, sample_of=functions))
