"""What a job on functions begins with: calibrate, estimate the epochs where nobody knows them, plan.

Wu et al. (CE-scaling, IPDPS 2023), sections III-B and III-C. What the paper takes as constants is measured here, by
probes that are paid for out of the same budget, and kept for the runs to come.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from mlcd.core.configuration import Space
from mlcd.core.decision import Decision
from mlcd.core.guarantee import why_nothing_was_measured
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.planners.functions.adaptive import AdaptiveTraining
from mlcd.planners.functions.beliefs.calibration import calibrate
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.foresight import decide
from mlcd.planners.functions.nouns import Calibration, FunctionsPlan, FunctionsTask, StagePlan, evidence_of
from mlcd.planners.functions.plans import NothingToChoose
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.sampling import expected_epochs, expected_stage, out_of_reach, sample
from mlcd.planners.functions.space import frozen, on_functions, usable

_CALIBRATION: TypeAdapter[Calibration] = TypeAdapter(Calibration)


@dataclass(frozen=True)
class PlanOnFunctions:
    """Calibrates on the probes of the space, samples, and plans by the method of that name."""

    method: str = "exact"

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """A probe that is still missing, or the plan."""
        try:
            return self._next(job, space, history)
        except NothingToChoose as why:
            return Finish(str(why), decision=Decision(None, str(why), binding=str(why)))

    def _next(self, job: Job, space: Space, history: History) -> Step:
        task = on_functions(job)
        if stored_calibration(task, history) is None:
            for each in space.configurations:
                if each not in history.tried:
                    return Probe(each, f"calibration: {each}")
        calibration = _known(task, history)
        if calibration is not None:
            missing = sample(
                job, _problem(job, calibration, history), history, self._steered(job, calibration, history)
            )
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
        if (beyond := out_of_reach(job, history)) is not None:
            return Finish(beyond, decision=Decision(None, beyond, binding=beyond, plan=FunctionsPlan((), calibration)))
        steered, problem = self._steered(job, calibration, history), _problem(job, calibration, history)
        decision = decide(problem, job.goal, history, calibration, self.method, steered)
        return Finish(decision.because, decision=decision)

    def _steered(self, job: Job, calibration: Calibration, history: History) -> StagePlan | None:
        """How a training would begin; tuning is planned in stages."""
        if on_functions(job).tuning is not None:
            return None
        return AdaptiveTraining(calibration, self.method, expected_epochs(job, history)).plan(job, history)


def stored_calibration(task: FunctionsTask, history: History) -> Calibration | None:
    """What earlier runs have stored, if it is about every storage that this job may use."""
    if history.learned is None:
        return None
    stored = _CALIBRATION.validate_python(history.learned)
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
    stages = task.tuning.stages if task.tuning is not None else (expected_stage(job, history),)
    return StageProblem(EpochModel(task.workload, frozen(task), calibration), task, stages)
