"""Tuning by successive halving on functions: a stage at a time, and only the better part of its trials goes on.

Jamieson and Talwalkar (2016) for the halving, Wu et al. (CE-scaling, IPDPS 2023, section III-C) for the plan of its
stages. What is left of the limits is planned again before each stage, since stages never take exactly what was planned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.core.units import counted
from mlcd.planners.functions.beliefs.calibration import spread
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.foresight import planned
from mlcd.planners.functions.nouns import Calibration, Stage, TrainEpochs, evidence_of, on_functions
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.run_state import left_of, patience_s
from mlcd.planners.functions.space import configuration, frozen

MOST_LAUNCHES = 3
"""Of a stage that breaks; what its trials have finished by then counts."""

Losses = Mapping[tuple[int, int], float]
"""By trial and epoch."""


@dataclass(frozen=True)
class SuccessiveHalving:
    """Runs the stages of a tuning job, best plan first, within what is left of the limits."""

    calibration: Calibration
    method: str = "exact"

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next stage, what is missing of a broken one, or the trial that is left."""
        tuning = on_functions(job).tuning
        assert tuning is not None, "a job without trials is not tuned"
        # an epoch that was done again counts as it came out last
        losses = {(e.trial, e.number): e.loss for run in history.runs for e in evidence_of(run).epochs}
        stages, trials, done = tuning.stages, tuple(range(tuning.trials)), 0
        for place, stage in enumerate(stages):
            after = done + stage.epochs
            if missing := [trial for trial in trials if (trial, after) not in losses]:
                return self._stage(job, history, stages, place, missing, losses)
            kept = stages[place + 1].trials if place + 1 < len(stages) else 1
            trials, done = best(trials, after, losses, kept), after
        loss = losses[trials[0], done]
        if not math.isfinite(loss):
            return Finish("no trial has a loss that is a number: try lower learning rates")
        where = history.runs[-1].configuration
        return Finish(f"the best of {counted(tuning.trials, 'trial')} is {trials[0]}: loss {loss:.4g}", where)

    def _stage(
        self, job: Job, history: History, stages: tuple[Stage, ...], place: int, missing: list[int], losses: Losses
    ) -> Step:
        task = on_functions(job)
        before, after = sum(s.epochs for s in stages[:place]), sum(s.epochs for s in stages[: place + 1])
        if (broken := _broken(history, after)) >= MOST_LAUNCHES:
            return Finish(f"stage {place + 1} was tried {broken} times: {history.runs[-1].ending}")
        # Trials that a broken launch has left at different epochs go on in turn, the furthest behind first.
        between = range(before + 1, after)
        behind = {trial: max((n for n in between if (trial, n) in losses), default=before) for trial in missing}
        done = min(behind.values())
        group = tuple(trial for trial in missing if behind[trial] == done)
        ahead = (Stage(len(group), after - done), *stages[place + 1 :])
        problem = StageProblem(EpochModel(task.workload, frozen(task), self.calibration), task, ahead)
        plan = planned(problem, left_of(job.goal, history, spread(self.calibration)), self.method)
        if plan is None:
            return Finish(_out_of_limits(job, place, len(stages)))
        work = TrainEpochs(after - done, done, group)
        where = configuration(task, plan.stages[0].allocation, work)
        samples = task.workload.samples * len(group) * work.epochs
        trials, epochs = counted(len(group), "trial"), counted(work.epochs, "epoch")
        because = f"stage {place + 1} of {len(stages)}: {trials}, {epochs} each on {plan.stages[0].allocation}"
        return Apply(where, because, samples, work=work, most_s=patience_s(plan.stages[0].seconds))


def best(trials: tuple[int, ...], epoch: int, losses: Losses, kept: int) -> tuple[int, ...]:
    """So many trials with the smallest losses after this epoch; what is not a number is the worst."""

    def order(trial: int) -> tuple[float, int]:
        loss = losses[trial, epoch]
        return (loss if math.isfinite(loss) else math.inf, trial)

    return tuple(sorted(sorted(trials, key=order)[:kept]))


def _broken(history: History, after: int) -> int:
    """How many launches at the end did not come to an end of this stage's epochs."""
    last = takewhile(
        lambda run: all(epoch.number < after for epoch in evidence_of(run).epochs), reversed(history.current_runs)
    )
    # Launches of the stage before ended with its own last epochs: only those that brought nothing are broken, and of
    # those only what nobody interrupted.
    return sum(1 for run in last if not evidence_of(run).epochs and run.outcome is not Outcome.INTERRUPTED)


def _out_of_limits(job: Job, place: int, stages: int) -> str:
    limits = [name for name, limit in (("budget", job.goal.budget_usd), ("deadline", job.goal.deadline_s)) if limit]
    return f"stage {place + 1} of {stages} does not fit into what is left of the {' and the '.join(limits)}"
