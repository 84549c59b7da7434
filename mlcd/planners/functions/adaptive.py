"""Adaptive training: train one epoch at a time, and choose the allocation again as the losses show how many remain.

Wu et al. (CE-scaling, IPDPS 2023), Algorithm 2. e: epochs expected when the allocation was chosen; e*: epochs expected
now; e': epochs done.

    lines 3-6     begin on the best allocation for the estimate made before training
    lines 8-10    after each epoch, predict e* from the losses so far (epoch_forecast.py)
    line 11       choose again if |e* - e| / e > delta. The paper has no absolute value there, but its text ('fluctuate
                  beyond a threshold') means both directions: if fewer epochs are left, each may cost more.
    lines 12-13   run one more epoch on the old allocation while the new functions start; then use the best allocation
                  for e* - e' - 1 epochs

Beyond the paper: the choice weighs all numbers of epochs that may be needed (hedge.py), and is made after every epoch.
While an epoch runs, the functions of the next one are started, where both may run at once: changing the allocation then
costs nothing, and no epoch waits for a start. A message says why the plan changed: e* moved by more than delta for two
epochs in a row, in the same direction; the time or cost of an epoch changed by more than delta; or what is left of the
limits no longer suffices.

No epoch is started whose worst case exceeds a limit. The plan depends on the history alone: it is replayed from it,
starting where the last step of the same run ended. The published methods are subclasses in
`mlcd_bench/baselines/functions/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, isfinite
from typing import ClassVar

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.choice import best_single, most_epochs, options_within
from mlcd.planners.functions.epoch_forecast import (
    EpochForecast,
    epochs_to_target,
    forecast_from_estimate,
    forecast_from_losses,
    known_epochs,
)
from mlcd.planners.functions.epoch_model.boundary import Boundary, boundary
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.exact import exact
from mlcd.planners.functions.hedge import hedged_plan
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibration,
    FunctionsTask,
    Planned,
    Stage,
    StagePlan,
    TrainEpochs,
    functions_task,
)
from mlcd.planners.functions.run_state import RunConstants, RunState, launch_timeout_s
from mlcd.planners.functions.space import allocation_at, configuration, tariff_of

MOST_FAILED_LAUNCHES = 3
"""Launches in a row that bring no epoch before the run is given up; each uses another allocation."""
COLD_EPOCHS = 2
"""Epochs of an allocation that are planned with their whole start-up time."""


@dataclass(frozen=True)
class EpochPlan:
    """The allocations of the next epochs, and why they were chosen, if they were chosen just now.

    `forecast`: the number of epochs that was expected then. `planned_factors`: planned seconds and dollars of an epoch
    over those of the model, then. `unchanged`: the next epoch has the allocation of the last one.
    """

    allocations: tuple[Allocation, ...]
    forecast: EpochForecast
    planned_factors: tuple[float, float]
    because: str = ""
    unchanged: bool = False


@dataclass(frozen=True)
class Replayed:
    """The plan after so many epochs, with the run's state then: replaying continues from here."""

    state: RunState
    epoch: int
    plan: EpochPlan
    forecast: EpochForecast | None = None

    def is_past_of(self, now: RunState) -> bool:
        """Whether this is an earlier point of the run that is in state `now`."""
        same_run = now.constants is self.state.constants and now.other_spending == self.state.other_spending
        if self.epoch > now.done or not same_run:
            return False
        runs, known = now.runs_until(self.epoch), self.state.history.runs
        same = len(runs) == len(known) and all(run is each for run, each in zip(runs, known, strict=True))
        job, then = now.job, self.state.job
        return same and (job.goal, job.target, now.most) == (then.goal, then.target, self.state.most)


@dataclass(frozen=True)
class AdaptiveTraining:
    """Trains to the target within the limits. `epochs`: how many were estimated before training.

    Another method is a subclass: `method` is its name, `plan_stages` plans the stages of a tuning job. `storages`: the
    only ones it uses; None for all. `calls_ahead`: the functions of the next epoch are started while one runs.
    """

    method: ClassVar[str] = "exact"
    plan_stages = staticmethod(exact)
    storages: ClassVar[tuple[str, ...] | None] = None
    calls_ahead: ClassVar[bool] = True
    calibration: Calibration
    epochs: float = 1.0
    _constants: list[tuple[FunctionsTask, RunConstants]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _replayed: list[Replayed] = field(default_factory=list, init=False, repr=False, compare=False)

    @staticmethod
    def needed(stages: Sequence[float]) -> float:
        """The smallest limit that allows a plan of these stages."""
        return sum(stages)

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next epoch, or why the run ends. `job` is what is left of it."""
        now = self._state(job, history)
        return self._finished(now) or self._next_epoch(now)

    def plan(self, job: Job, history: History) -> StagePlan | None:
        """The first plan, for the estimated number of epochs; None if it is for fewer."""
        now = self._state(job, history)
        epochs = max(1, ceil(min(self.epochs, now.most)))
        ahead = self._plan_epochs(now).allocations[:epochs] if len(now.constants.boundary) else ()
        if len(ahead) < epochs:
            return None
        stages, constants = [], now.constants
        for where, alike in groupby(ahead):
            count, (seconds, usd) = len(list(alike)), constants.seconds_and_usd(where)
            # Only after such an epoch has run is it known when to start the functions of the next.
            cold, (cold_s, cold_usd) = min(COLD_EPOCHS, count), constants.seconds_and_usd(where, cold=True)
            hot = count - cold
            stages.append(Planned(Stage(1, count), where, hot * seconds + cold * cold_s, hot * usd + cold * cold_usd))
        return StagePlan(self.method, tuple(stages))

    def _state(self, job: Job, history: History) -> RunState:
        """The state of the run. Its Pareto boundary takes a tenth of a second, so it is computed once."""
        task = functions_task(job)
        constants = next((constants for known, constants in self._constants if known == task), None)
        if constants is None:
            model = EpochModel(task.workload, tariff_of(task), self.calibration)
            allowed = task if self.storages is None else task.with_storages(*self.storages)
            points = boundary(model, allowed, called_ahead=self.calls_ahead)
            constants = RunConstants(model, points, task, self.calls_ahead)
            self._constants.append((task, constants))
        return RunState(job, history, constants)

    # The next step.

    def _finished(self, now: RunState) -> Finish | None:
        losses, target = now.losses, now.job.target
        if losses and not isfinite(losses[-1]):
            return Finish(f"the loss is {losses[-1]:g} after epoch {now.done}: try a lower learning rate")
        epochs = counted(now.done, "epoch")
        if losses and target is not None and target.reached(losses[-1]):
            return Finish(f"reached {target} in {epochs}: {losses[-1]:.4g}", now.history.runs[-1].configuration)
        if now.done >= now.most and target is None:
            return Finish(f"all {epochs} are done: {losses[-1]:.4g}", now.history.runs[-1].configuration)
        if now.done >= now.most:
            return Finish(f"{target} was not reached in the {epochs} that it may take; {self._state_in_words(now)}")
        if len(now.failed_launches) >= MOST_FAILED_LAUNCHES:
            tried = f"epoch {now.done + 1} was tried {len(now.failed_launches)} times"
            return Finish(f"{tried}; the last time: {now.failed_launches[-1].ending}; {self._state_in_words(now)}")
        if not len(now.constants.boundary):
            wanted = ", ".join(self.storages or self.calibration.links)
            return Finish(f"no allocation can be used with {wanted}: allow more functions, memory or storages")
        return None

    def _next_epoch(self, now: RunState) -> Apply | Finish:
        plan, task = self._plan_epochs(now), now.constants.task
        where = plan.allocations[0]
        then = plan.allocations[1] if len(plan.allocations) > 1 else where
        if plan.unchanged and now.is_usable(last := allocation_at(now.trained[-1].configuration)):
            # Time also passes between launches, so replaying a past choice can give a slightly different allocation.
            where, then = last, last if then == where else then
        because = plan.because if now.done and plan.because else self._progress(now, where) + plan.because
        if not now.is_within_limits(where):
            fits, options = options_within(now.options, now.left, *now.worst), now.options
            if not len(fits):
                return Finish(self._out_of_limits(now, float(options.cold_s.min()), float(options.cold_usd.min())))
            why = f"after: {now.failed_launches[-1].ending}" if now.failed_launches else "which could break a limit"
            planned, where = where, fits.allocation(self._fallback(now, fits, plan))
            then, because = where, f"epoch {now.done + 1}: {instead_of(where, planned)}, {why}"
        known = then != where or (self.calls_ahead and now.done + 1 < now.most)
        work = TrainEpochs(1, done=now.done, then=then if known and task.fit_together(where, then) else None)
        expected_s = max(now.seconds_and_usd([where], cold=True)[0], now.constants.seconds_and_usd(where, cold=True)[0])
        return Apply(
            configuration(task, where, work),
            because,
            float(task.workload.samples),
            work=work,
            most_s=launch_timeout_s(expected_s),
        )

    def _fallback(self, now: RunState, fits: Boundary, plan: EpochPlan) -> int:
        """The best of these options for all epochs left; if no option lasts, the one with the most epochs."""
        stopped = now.failed_launches and now.failed_launches[-1].outcome is Outcome.AT_THE_LIMIT
        found = None if stopped else best_single(fits, epochs_left(now, plan.forecast), now.planned)
        return found[0][0] if found is not None else most_epochs(fits, now.left)

    # The plan.

    def _plan_epochs(self, now: RunState) -> EpochPlan:
        """The plan, replayed over the epochs done: the first choice, and each choice after that."""
        point = self._replayed[0] if self._replayed and self._replayed[0].is_past_of(now) else None
        if point is None:
            begin = now.as_of(0)
            point = Replayed(begin, 0, self._choose(begin, self._forecast(begin)))
        for epoch in range(point.epoch + 1, now.done + 1):
            then, plan = now.as_of(epoch), point.plan
            forecast = self._forecast(then)
            rest = replace(plan, allocations=plan.allocations[1:] or plan.allocations, because="")
            again = self._after_epoch(then, rest, forecast, why_replan(then, rest, forecast, point.forecast))
            unchanged = again.allocations[0] == plan.allocations[0]
            point = Replayed(then, epoch, replace(again, unchanged=unchanged), forecast)
        self._replayed[:] = [point]
        return point.plan

    def _forecast(self, now: RunState) -> EpochForecast:
        """How many epochs it takes: from the estimate and, once there are any, the losses."""
        if now.job.target is None:
            return known_epochs(now.most)
        if not now.losses:
            return forecast_from_estimate(self.epochs, now.most)
        return forecast_from_losses(now.losses, now.job.target, self.epochs, now.most)

    def _after_epoch(self, now: RunState, plan: EpochPlan, forecast: EpochForecast, why: str) -> EpochPlan:
        """Lines 12 and 13: one more epoch on the old allocation, then the new one. `why`: empty if nothing changed."""
        old = plan.allocations[0]
        if not now.is_usable(old):
            chosen = self._choose(now, forecast)
            return replace(chosen, because=f"{why}: {instead_of(chosen.allocations[0], old)}{chosen.because}")
        chosen = self._choose(now.with_epoch_on(old), forecast, assigned=1, old=old)
        new = instead_of(chosen.allocations[0], old, " after this epoch")
        reason = why or f"about {counted(round(forecast.epochs), 'epoch')} are expected now"
        because = f"{reason}: {new}{chosen.because}" if why or chosen.allocations[0] != old else ""
        return replace(chosen, allocations=(old, *chosen.allocations), because=because)

    def _choose(
        self, now: RunState, forecast: EpochForecast, assigned: int = 0, old: Allocation | None = None
    ) -> EpochPlan:
        """The best plan for all epochs that may be needed after the `assigned` ones, which already have an allocation.

        If there is none, the allocation with the most epochs within the limits.
        """
        goal, options = now.planned, now.options
        spent = now.history.spent_usd if goal.objective is Objective.CHEAPEST else now.history.elapsed_s
        place = None if old is None else options.place(old)
        hedge = hedged_plan(options, forecast.survival(now.done + assigned), goal, spent, place)
        if hedge is None:
            return EpochPlan((options.allocation(most_epochs(options, now.left)),), forecast, now.planned_factors)
        allocations = tuple(where for i, count in hedge.epochs for where in [options.allocation(i)] * count)
        enough = f", enough for {counted(len(allocations), 'epoch')}; the risk of needing more is {hedge.risk:.0%}"
        return EpochPlan(allocations, forecast, now.planned_factors, enough if hedge.risk else "")

    # Messages.

    def _progress(self, now: RunState, where: Allocation) -> str:
        forecast, target = self._forecast(now), now.job.target
        if target is None or forecast.in_sight:
            return f"epoch {now.done + 1} of about {max(round(forecast.epochs), now.done + 1)}: {where}"
        return f"epoch {now.done + 1}: {target} is not in sight, {forecast.tendency}"

    def _out_of_limits(self, now: RunState, seconds: float, usd: float) -> str:
        """Which limit one more epoch would break, what it needs, and how far training has come."""
        left, (longer, dearer) = now.left, now.worst
        short = []
        if left.budget_usd is not None and usd * dearer > left.budget_usd:
            over = format_usd(left.budget_usd)
            short.append(f"the budget: an epoch can cost {format_usd(usd * dearer)}, {over} is left")
        if left.deadline_s is not None and seconds * longer > left.deadline_s:
            over = format_duration(left.deadline_s)
            short.append(f"the deadline: an epoch can take {format_duration(seconds * longer)}, {over} is left")
        why = " and ".join(short) or "the budget and the deadline together: no allocation keeps both for one more epoch"
        return f"one more epoch does not fit into {why}; {self._state_in_words(now)}"

    def _state_in_words(self, now: RunState) -> str:
        """The loss so far, and how many more epochs the target needs."""
        if not now.losses:
            return "no epoch is done"
        forecast, target = self._forecast(now), now.job.target
        done = f"after {counted(now.done, 'epoch')} the loss is {now.losses[-1]:.4g}"
        if target is None:
            return done
        if not forecast.in_sight:
            return f"{done}; {target} is not in sight, {forecast.tendency}"
        missing = epochs_to_target(now.losses, target)
        more = f"; about {counted(ceil(missing), 'epoch')} more would reach {target}" if isfinite(missing) else ""
        return done + more


def why_replan(now: RunState, plan: EpochPlan, forecast: EpochForecast, earlier: EpochForecast | None) -> str:
    """Why the plan has to change, or an empty string: line 11 for two epochs in a row, or the other reasons above."""
    delta, was = now.constants.task.delta, plan.forecast
    both = [each for each in (earlier, forecast) if each is not None and each.fitted]
    moves = [each.epochs / was.epochs - 1 for each in both]
    if len(moves) == 2 and (min(moves) > delta or max(moves) < -delta):
        if not forecast.in_sight:
            return f"{now.job.target} is not in sight, {forecast.tendency}"
        return f"{counted(round(forecast.epochs), 'epoch')} are expected now, not {round(was.epochs)}"
    if failed := [where for where in plan.allocations if not now.is_usable(where)]:
        return f"{failed[0]} has failed"
    slower, dearer = (current / then for current, then in zip(now.planned_factors, plan.planned_factors, strict=True))
    if max(abs(slower - 1), abs(dearer - 1)) > delta:
        return f"an epoch takes {slower:.2g} and costs {dearer:.2g} times what was planned"
    seconds, usd = now.seconds_and_usd(plan.allocations)
    return "" if now.left.allows(usd, seconds) else "what is left of the limits no longer suffices"


def epochs_left(now: RunState, forecast: EpochForecast) -> int:
    """The expected number of further epochs; at least one, since the target is not reached yet."""
    return max(1, ceil(forecast.epochs - now.done - 1e-6))


def instead_of(new: Allocation, old: Allocation, when: str = "") -> str:
    """'still 8 x 512 MB, s3', '16 x 512 MB, s3 after this epoch, instead of 8 x 512 MB, s3'."""
    return f"still {old}" if new == old else f"{new}{when}, instead of {old}"
