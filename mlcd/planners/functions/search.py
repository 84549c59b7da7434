"""What a job on functions begins with: calibrate, estimate the epochs where nobody knows them, plan.

Wu et al. (CE-scaling, IPDPS 2023), sections III-B and III-C. What the paper takes as constants is measured here, by
probes that are paid for out of the same budget, and kept for the runs to come.

How many epochs a training will take is estimated as LambdaML does it (Algorithm 2, line 4): a part of the data is
trained, and a curve drawn through its losses. How often functions meet in an epoch, and so how far it gets, depends on
how many they are; the sample is therefore trained as the functions of the plan would train all of the data, and again
if the plan that follows from it has others.
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
from mlcd.planners.functions import calibrations
from mlcd.planners.functions.beliefs.calibration import calibrate
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.foresight import METHODS, decide
from mlcd.planners.functions.nouns import (
    SAMPLE,
    Allocation,
    Calibration,
    FunctionsPlan,
    FunctionsTask,
    Stage,
    StagePlan,
    TrainEpochs,
    evidence_of,
    on_functions,
)
from mlcd.planners.functions.problem import NothingToChoose, StageProblem, cheapest, fastest
from mlcd.planners.functions.space import configuration, frozen, usable
from mlcd.planners.functions.workload import MB_PER_VCPU
from mlcd.planners.modeling.loss_curve import fit

SAMPLED_EPOCHS = 8
"""Of the sample, before a curve is drawn through its losses."""
MOST_SAMPLES = 3


@dataclass(frozen=True)
class PlanOnFunctions:
    """Calibrates on the probes of the space, samples, and plans by the method of that name."""

    method: str = "exact"

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """A probe that is still missing, or the plan."""
        task = on_functions(job)
        if stored_calibration(task, history) is None:
            for each in space.configurations:
                if each not in history.tried:
                    return Probe(each, f"calibration: {each}")
        calibration = _known(task, history)
        if calibration is not None:
            steered, problem = self._steered(job, calibration, history), _problem(job, calibration, history)
            with suppress(NothingToChoose):  # the answer says why
                missing = _sample(job, problem, history, steered)
                if missing is not None and missing.configuration not in {r.configuration for r in history.refusals}:
                    return missing
        return self.answer(job, space, history)

    def answer(self, job: Job, space: Space, history: History) -> Finish:
        """The decision that what is known comes to; nothing is probed."""
        calibration = _known(on_functions(job), history)
        if calibration is None:
            failed = next((m for m in history.measurements if evidence_of(m).calibrated is None), None)
            nothing = why_nothing_was_measured(job, space, history)
            binding = f"no probe could calibrate: {failed.ending}" if failed is not None else nothing
            if failed is not None and failed.outcome is Outcome.TIMED_OUT:
                binding += ": use a smaller batch, or allow more memory"
            return Finish("nothing is known of the functions", decision=Decision(None, binding, binding=binding))
        if (beyond := _out_of_reach(job, history)) is not None:
            return Finish(beyond, decision=Decision(None, beyond, binding=beyond, plan=FunctionsPlan((), calibration)))
        steered, problem = self._steered(job, calibration, history), _problem(job, calibration, history)
        try:
            decision = decide(problem, job.goal, history, calibration, self.method, steered)
        except NothingToChoose as why:
            decision = Decision(None, str(why), binding=str(why))
        return Finish(decision.because, decision=decision)

    def _steered(self, job: Job, calibration: Calibration, history: History) -> StagePlan | None:
        """How a training would begin; tuning is planned in stages."""
        if on_functions(job).tuning is not None:
            return None
        return METHODS[self.method](calibration, expected_epochs(job, history)).plan(job, history)


def stored_calibration(task: FunctionsTask, history: History) -> Calibration | None:
    """What earlier runs have stored, if it is about every storage that this job may use."""
    if history.learned is None:
        return None
    stored = calibrations.from_document(history.learned)
    return stored if set(usable(task)) <= set(stored.links) else None


def measured_calibration(task: FunctionsTask, history: History) -> Calibration | None:
    """What the probes of this run have shown."""
    shown = [evidence_of(m).calibrated for m in history.measurements]
    probes = [each for each in shown if each is not None]
    return calibrate(probes, task.workload) if probes else None


def _known(task: FunctionsTask, history: History) -> Calibration | None:
    return stored_calibration(task, history) or measured_calibration(task, history)


def _problem(job: Job, calibration: Calibration, history: History) -> StageProblem:
    """The stages to plan: those of the tuning, or all epochs that training is expected to take as one."""
    task = on_functions(job)
    whole = Stage(1, max(1, math.ceil(expected_epochs(job, history))))
    stages = task.tuning.stages if task.tuning is not None else (whole,)
    return StageProblem(EpochModel(task.workload, frozen(task), calibration), task, stages)


def _sample(job: Job, problem: StageProblem, history: History, planned: StagePlan | None) -> Probe | None:
    """The sample that is still missing. `planned`: what would be done by what is known now."""
    task, samples = on_functions(job), _samples(history)
    if task.tuning is not None or task.epochs is not None or job.target is None:
        return None
    if not samples:
        ends = [plan(problem).stages[0].allocation.functions for plan in (cheapest, fastest)]
        return _probe(task, max(1, round(math.sqrt(ends[0] * ends[1]))))
    again = planned.stages[0].allocation.functions if planned is not None else None
    tried, last = {functions for functions, _ in samples}, samples[-1][1]
    if again is None or len(samples) >= MOST_SAMPLES or again in tried or not last:
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


def _out_of_reach(job: Job, history: History) -> str | None:
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
    """One function, alone: nothing is exchanged."""
    low, high = task.memory_mb
    where = Allocation(1, min(high, max(low, MB_PER_VCPU)), usable(task)[0])
    part = format_count(task.workload.samples * SAMPLE)
    because = f"how many epochs it takes: {part} samples, trained as {functions} functions would train all"
    place = configuration(task, where, TrainEpochs(SAMPLED_EPOCHS))
    return Probe(place, because, work=TrainEpochs(SAMPLED_EPOCHS, sample_of=functions))
