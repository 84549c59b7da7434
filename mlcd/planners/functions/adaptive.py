"""The adaptive scheduler: train an epoch at a time, and choose again as the number of epochs that it takes shows.

Wu et al. (CE-scaling, IPDPS 2023), Algorithm 2. e: epochs expected when it was chosen last; e*: now; e': done.

    lines 3-6     begin on the best allocation for the estimate from before
    lines 8-10    after each epoch, e* from the losses so far (outlook.py)
    line 11       |e* - e| / e > delta: choose again. The paper has no absolute value there, but its text ('fluctuate
                  beyond a threshold') means both directions: what fewer epochs leave over pays for better ones.
    lines 12-13   one more epoch on the old allocation, while the new functions start; then the best for e* - e' - 1

Beyond the paper: all numbers of epochs that may be needed are weighed (hedge.py), and it is chosen after every epoch.
Every epoch's functions are called while the one before runs, where both may run at once: another choice then costs
nothing, and nobody waits for a start. A reason is given where e* has moved by more than delta for two epochs in a row,
to the same side; where an epoch takes or costs otherwise, by more than delta; or where what is left no longer suffices.

No epoch is started whose worst case is beyond a limit. All is folded from the history, and depends on nothing else; the
fold goes on from where it was for the last step, where that was the same run. The papers' own ways to train are
subclasses in `mlcd_bench/baselines/functions.py`.
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
from mlcd.planners.functions.beliefs.boundary import Boundary, boundary
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.choice import fitting, furthest, single
from mlcd.planners.functions.exact import exact
from mlcd.planners.functions.hedge import hedged
from mlcd.planners.functions.nouns import (
    Allocation,
    Calibration,
    FunctionsTask,
    Planned,
    Stage,
    StagePlan,
    TrainEpochs,
    on_functions,
)
from mlcd.planners.functions.outlook import Outlook, after, before, certain, still_missing
from mlcd.planners.functions.run_state import Ground, RunState, patience_s
from mlcd.planners.functions.space import allocated, configuration, frozen

MOST_TRIES = 3
"""Launches in a row that bring no epoch before the run is given up; each on another allocation."""
COLD = 2
"""Epochs of an allocation that are planned with their whole start."""


@dataclass(frozen=True)
class Course:
    """What the epochs to come are to run on, what that was chosen for, and why, if it was chosen just now.

    `yardstick`: what an epoch was planned to take and to cost then, over what the model says. `steady`: the next epoch
    is planned as the last one was.
    """

    ahead: tuple[Allocation, ...]
    outlook: Outlook
    yardstick: tuple[float, float]
    because: str = ""
    steady: bool = False


@dataclass(frozen=True)
class Folded:
    """The course after so many epochs, as it stood then, and how many were expected: the fold goes on from here."""

    then: RunState
    epoch: int
    course: Course
    outlook: Outlook | None = None

    def before(self, now: RunState) -> bool:
        """Whether this is the course that the run had then which is in this state now."""
        if self.epoch > now.done or now.ground is not self.then.ground or now.besides != self.then.besides:
            return False
        runs, known = now.runs_until(self.epoch), self.then.history.runs
        same = len(runs) == len(known) and all(run is each for run, each in zip(runs, known, strict=True))
        job, then = now.job, self.then.job
        return same and (job.goal, job.target, now.most) == (then.goal, then.target, self.then.most)


@dataclass(frozen=True)
class AdaptiveTraining:
    """Trains to the target within the limits. `epochs`: what it was estimated to take before it began.

    A method of its own is a subclass: `method` is its name, `plan_stages` its plan for the stages of a tuning job.
    `storages`: what it keeps to; None for all. `calls_ahead`: the functions of every next epoch start while one runs.
    """

    method: ClassVar[str] = "exact"
    plan_stages = staticmethod(exact)
    storages: ClassVar[tuple[str, ...] | None] = None
    calls_ahead: ClassVar[bool] = True
    calibration: Calibration
    epochs: float = 1.0
    _known: list[tuple[FunctionsTask, Ground]] = field(default_factory=list, init=False, repr=False, compare=False)
    _folded: list[Folded] = field(default_factory=list, init=False, repr=False, compare=False)

    @staticmethod
    def needed(stages: Sequence[float]) -> float:
        """The least limit for a plan that takes so much in each stage."""
        return sum(stages)

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next epoch, or how it ended. `job` is what is left of it."""
        now = self._state(job, history)
        return self._ended(now) or self._next_epoch(now)

    def plan(self, job: Job, history: History) -> StagePlan | None:
        """What the first choice comes to if it takes as many epochs as are estimated; None if it is for fewer."""
        now = self._state(job, history)
        epochs = max(1, ceil(min(self.epochs, now.most)))
        ahead = self._course(now).ahead[:epochs] if len(now.ground.points) else ()
        if len(ahead) < epochs:
            return None
        stages, ground = [], now.ground
        for where, alike in groupby(ahead):
            count, (seconds, usd) = len(list(alike)), ground.takes(where)
            # A platform has to have seen such an epoch before it knows when to call the functions of the next.
            cold, (cold_s, cold_usd) = min(COLD, count), ground.takes(where, cold=True)
            hot = count - cold
            stages.append(Planned(Stage(1, count), where, hot * seconds + cold * cold_s, hot * usd + cold * cold_usd))
        return StagePlan(self.method, tuple(stages))

    def _state(self, job: Job, history: History) -> RunState:
        """The boundary is found once: it takes a tenth of a second, and every epoch asks for it."""
        limits = on_functions(job)
        ground = next((ground for known, ground in self._known if known == limits), None)
        if ground is None:
            model = EpochModel(limits.workload, frozen(limits), self.calibration)
            allowed = limits if self.storages is None else limits.meeting_at(*self.storages)
            points = boundary(model, allowed, called_ahead=self.calls_ahead)
            ground = Ground(model, points, limits, self.calls_ahead)
            self._known.append((limits, ground))
        return RunState(job, history, ground)

    # What is done.

    def _ended(self, now: RunState) -> Finish | None:
        losses, target = now.losses, now.job.target
        if losses and not isfinite(losses[-1]):
            return Finish(f"the loss is {losses[-1]:g} after epoch {now.done}: try a lower learning rate")
        epochs = counted(now.done, "epoch")
        if losses and target is not None and target.reached(losses[-1]):
            return Finish(f"reached {target} in {epochs}: {losses[-1]:.4g}", now.history.runs[-1].configuration)
        if now.done >= now.most and target is None:
            return Finish(f"all {epochs} are done: {losses[-1]:.4g}", now.history.runs[-1].configuration)
        if now.done >= now.most:
            return Finish(f"{target} was not reached in the {epochs} that it may take; {self._so_far(now)}")
        if len(now.broken) >= MOST_TRIES:
            tried = f"epoch {now.done + 1} was tried {len(now.broken)} times"
            return Finish(f"{tried}; the last time: {now.broken[-1].ending}; {self._so_far(now)}")
        if not len(now.ground.points):
            wanted = ", ".join(self.storages or self.calibration.links)
            return Finish(f"no allocation can be used with {wanted}: allow more functions, memory or storages")
        return None

    def _next_epoch(self, now: RunState) -> Apply | Finish:
        course, task = self._course(now), now.ground.limits
        where = course.ahead[0]
        then = course.ahead[1] if len(course.ahead) > 1 else where
        if course.steady and now.works(last := allocated(now.trained[-1].configuration)):
            # The clock runs between launches, too: what was chosen then comes out a little different now.
            where, then = last, last if then == where else then
        because = course.because if now.done and course.because else self._progress(now, where) + course.because
        if not now.may_use(where):
            fits, offered = fitting(now.options, now.left, *now.worst), now.options
            if not len(fits):
                return Finish(self._out_of_limits(now, float(offered.cold_s.min()), float(offered.cold_usd.min())))
            why = f"after: {now.broken[-1].ending}" if now.broken else "which could break a limit"
            planned, where = where, fits.allocation(self._instead(now, fits, course))
            then, because = where, f"epoch {now.done + 1}: {instead_of(where, planned)}, {why}"
        known = then != where or (self.calls_ahead and now.done + 1 < now.most)
        work = TrainEpochs(1, done=now.done, then=then if known and task.beside(where, then) else None)
        return Apply(
            configuration(task, where, work),
            because,
            float(task.workload.samples),
            work=work,
            most_s=patience_s(max(now.takes([where], cold=True)[0], now.ground.takes(where, cold=True)[0])),
        )

    def _instead(self, now: RunState, fits: Boundary, course: Course) -> int:
        """What is best for the epochs left among these; what gets furthest, if nothing is."""
        stopped = now.broken and now.broken[-1].outcome is Outcome.AT_THE_LIMIT
        found = None if stopped else single(fits, epochs_left(now, course.outlook), now.planned)
        return found[0][0] if found is not None else furthest(fits, now.left)

    # How it is chosen.

    def _course(self, now: RunState) -> Course:
        """Folded over the epochs done: what was chosen first, and what each time that it was chosen again."""
        folded = self._folded[0] if self._folded and self._folded[0].before(now) else None
        if folded is None:
            begin = now.as_of(0)
            folded = Folded(begin, 0, self._chosen(begin, self._outlook(begin)))
        for epoch in range(folded.epoch + 1, now.done + 1):
            then, course = now.as_of(epoch), folded.course
            outlook, left = self._outlook(then), replace(course, ahead=course.ahead[1:] or course.ahead, because="")
            again = self._after_epoch(then, left, outlook, why_again(then, left, outlook, folded.outlook))
            folded = Folded(then, epoch, replace(again, steady=again.ahead[0] == course.ahead[0]), outlook)
        self._folded[:] = [folded]
        return folded.course

    def _outlook(self, now: RunState) -> Outlook:
        """From the estimate alone as long as there is nothing else."""
        if now.job.target is None:
            return certain(now.most)
        if not now.losses:
            return before(self.epochs, now.most)
        return after(now.losses, now.job.target, self.epochs, now.most)

    def _after_epoch(self, now: RunState, course: Course, outlook: Outlook, why: str) -> Course:
        """Lines 12 and 13: the old allocation once more, then the new one. `why`: empty where nothing has changed."""
        old = course.ahead[0]
        if not now.works(old):
            chosen = self._chosen(now, outlook)
            return replace(chosen, because=f"{why}: {instead_of(chosen.ahead[0], old)}{chosen.because}")
        chosen = self._chosen(now.with_epoch_on(old), outlook, besides=1, old=old)
        new = instead_of(chosen.ahead[0], old, " after this epoch")
        said = why or f"about {counted(round(outlook.epochs), 'epoch')} are expected now"
        because = "" if not why and chosen.ahead[0] == old else f"{said}: {new}{chosen.because}"
        return replace(chosen, ahead=(old, *chosen.ahead), because=because)

    def _chosen(self, now: RunState, outlook: Outlook, besides: int = 0, old: Allocation | None = None) -> Course:
        """The best for all epochs that may be needed after those provided for (`besides`); else what gets furthest."""
        goal, offered = now.planned, now.options
        gone = now.history.spent_usd if goal.objective is Objective.CHEAPEST else now.history.elapsed_s
        place = None if old is None else offered.place(old)
        hedge = hedged(offered, outlook.chances(now.done + besides), goal, gone, place)
        if hedge is None:
            return Course((offered.allocation(furthest(offered, now.left)),), outlook, now.yardstick)
        ahead = tuple(where for i, count in hedge.epochs for where in [offered.allocation(i)] * count)
        enough = f", enough for {counted(len(ahead), 'epoch')}; with {hedge.risk:.0%} it takes more"
        return Course(ahead, outlook, now.yardstick, enough if hedge.risk else "")

    # What is said.

    def _progress(self, now: RunState, where: Allocation) -> str:
        outlook, target = self._outlook(now), now.job.target
        if target is None or outlook.in_sight:
            return f"epoch {now.done + 1} of about {max(round(outlook.epochs), now.done + 1)}: {where}"
        return f"epoch {now.done + 1}: {target} is not in sight, {outlook.tendency}"

    def _out_of_limits(self, now: RunState, seconds: float, usd: float) -> str:
        """Which limit, what one more epoch would take of it, how far it came, and how many epochs are missing."""
        left, (longer, dearer) = now.left, now.worst
        short = []
        if left.budget_usd is not None and usd * dearer > left.budget_usd:
            over = format_usd(left.budget_usd)
            short.append(f"the budget: an epoch can cost {format_usd(usd * dearer)}, {over} is left")
        if left.deadline_s is not None and seconds * longer > left.deadline_s:
            over = format_duration(left.deadline_s)
            short.append(f"the deadline: an epoch can take {format_duration(seconds * longer)}, {over} is left")
        why = " and ".join(short) or "the budget and the deadline together: no allocation keeps both for one more epoch"
        return f"one more epoch does not fit into {why}; {self._so_far(now)}"

    def _so_far(self, now: RunState) -> str:
        """The loss, and what is missing."""
        if not now.losses:
            return "no epoch is done"
        outlook, target = self._outlook(now), now.job.target
        done = f"after {counted(now.done, 'epoch')} the loss is {now.losses[-1]:.4g}"
        if target is None:
            return done
        if not outlook.in_sight:
            return f"{done}; {target} is below what was ever seen, {outlook.tendency}"
        missing = still_missing(now.losses, target)
        more = f"; about {counted(ceil(missing), 'epoch')} more would reach {target}" if isfinite(missing) else ""
        return done + more


def why_again(now: RunState, course: Course, outlook: Outlook, earlier: Outlook | None) -> str:
    """Line 11, for two epochs in a row; or what is left is too little for what was chosen."""
    delta, was = now.ground.limits.delta, course.outlook
    both = [each for each in (earlier, outlook) if each is not None and each.fitted]
    moves = [each.epochs / was.epochs - 1 for each in both]
    if len(moves) == 2 and (min(moves) > delta or max(moves) < -delta):
        if not outlook.in_sight:
            return f"{now.job.target} is not in sight, {outlook.tendency}"
        return f"{counted(round(outlook.epochs), 'epoch')} are expected now, not {round(was.epochs)}"
    if broken := [where for where in course.ahead if not now.works(where)]:
        return f"{broken[0]} has failed"
    slower, dearer = (current / then for current, then in zip(now.yardstick, course.yardstick, strict=True))
    if max(abs(slower - 1), abs(dearer - 1)) > delta:
        return f"an epoch takes {slower:.2g} and costs {dearer:.2g} times what was planned"
    seconds, usd = now.takes(course.ahead)
    return "" if now.left.allows(usd, seconds) else "what is left no longer suffices"


def epochs_left(now: RunState, outlook: Outlook) -> int:
    """Epochs that are expected from now on; the target was not reached yet, so at least one."""
    return max(1, ceil(outlook.epochs - now.done - 1e-6))


def instead_of(new: Allocation, old: Allocation, when: str = "") -> str:
    """'still 8 x 512 MB, s3', '16 x 512 MB, s3 after this epoch, instead of 8 x 512 MB, s3'."""
    return f"still {old}" if new == old else f"{new}{when}, instead of {old}"
