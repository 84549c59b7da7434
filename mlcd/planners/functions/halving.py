"""Tuning by successive halving on functions: after each stage only the trials with the lowest losses continue.

Jamieson and Talwalkar (2016) for the halving, Wu et al. (CE-scaling, IPDPS 2023, section III-C) for the plan of its
stages. Before each stage the rest is planned again, since stages never take exactly what was planned.
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
from mlcd.planners.functions.decide import plan_by_method
from mlcd.planners.functions.epoch_model.calibration import spread
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import Calibration, Stage, TrainEpochs, evidence_of, functions_task
from mlcd.planners.functions.problem import StageProblem
from mlcd.planners.functions.run_state import launch_timeout_s, limits_left
from mlcd.planners.functions.space import configuration, tariff_of

MOST_LAUNCHES = 3
"""Launches of a stage that complete no epoch before the run is given up; what the trials have completed stays."""

Losses = Mapping[tuple[int, int], float]
"""Losses by (trial, epoch)."""


@dataclass(frozen=True)
class SuccessiveHalving:
    """Runs the stages of a tuning job within the limits."""

    calibration: Calibration
    method: str = "exact"

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next stage, the rest of an incomplete one, or the best trial."""
        tuning = functions_task(job).tuning
        assert tuning is not None, "a job without trials is not tuned"
        # of a repeated epoch the last loss counts
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
        task = functions_task(job)
        before, after = sum(s.epochs for s in stages[:place]), sum(s.epochs for s in stages[: place + 1])
        if (failed := _failed_launches(history, after)) >= MOST_LAUNCHES:
            return Finish(f"stage {place + 1} was tried {failed} times: {history.runs[-1].ending}")
        # A failed launch may leave trials at different epochs: those that are furthest behind continue first.
        between = range(before + 1, after)
        done_by = {trial: max((n for n in between if (trial, n) in losses), default=before) for trial in missing}
        done = min(done_by.values())
        group = tuple(trial for trial in missing if done_by[trial] == done)
        ahead = (Stage(len(group), after - done), *stages[place + 1 :])
        problem = StageProblem(EpochModel(task.workload, tariff_of(task), self.calibration), task, ahead)
        plan = plan_by_method(problem, limits_left(job.goal, history, spread(self.calibration)), self.method)
        if plan is None:
            return Finish(_out_of_limits(job, place, len(stages)))
        work = TrainEpochs(after - done, done, group)
        where = configuration(task, plan.stages[0].allocation, work)
        samples = task.workload.samples * len(group) * work.epochs
        trials, epochs = counted(len(group), "trial"), counted(work.epochs, "epoch")
        because = f"stage {place + 1} of {len(stages)}: {trials}, {epochs} each on {plan.stages[0].allocation}"
        return Apply(where, because, samples, work=work, most_s=launch_timeout_s(plan.stages[0].seconds))


def best(trials: tuple[int, ...], epoch: int, losses: Losses, kept: int) -> tuple[int, ...]:
    """The `kept` trials with the smallest losses after this epoch; a loss that is not a number is the worst."""

    def order(trial: int) -> tuple[float, int]:
        loss = losses[trial, epoch]
        return (loss if math.isfinite(loss) else math.inf, trial)

    return tuple(sorted(sorted(trials, key=order)[:kept]))


def _failed_launches(history: History, after: int) -> int:
    """How many launches since the last one that completed epoch `after` completed no epoch and were not interrupted."""
    last = takewhile(
        lambda run: all(epoch.number < after for epoch in evidence_of(run).epochs), reversed(history.current_runs)
    )
    return sum(1 for run in last if not evidence_of(run).epochs and run.outcome is not Outcome.INTERRUPTED)


def _out_of_limits(job: Job, place: int, stages: int) -> str:
    limits = [name for name, limit in (("budget", job.goal.budget_usd), ("deadline", job.goal.deadline_s)) if limit]
    return f"stage {place + 1} of {stages} does not fit into what is left of the {' and the '.join(limits)}"
