"""The adaptive scheduler: train an epoch at a time, and choose again when the epochs that it takes turn out otherwise.

Wu et al. (CE-scaling, IPDPS 2023), Algorithm 2. e: epochs expected when it was chosen last; e*: now; e': done.

    lines 3-6     begin on the best allocation for the estimate from before
    lines 8-10    after each epoch, e* from the losses so far (outlook.py)
    line 11       |e* - e| / e > delta: choose again. The paper has no absolute value there, but its text ('fluctuate
                  beyond a threshold') means both directions: what fewer epochs leave over pays for better ones.
    lines 12-13   one more epoch on the old allocation, while the new functions start; then the best for e* - e' - 1

Beyond the paper: e* has to have moved for two epochs in a row, to the same side, so that one outlier restarts nothing.
It is chosen again, too, if an epoch turns out to take or to cost otherwise, by more than delta, or what is left no
longer suffices. The methods:

    exact     weighs all numbers of epochs that may be needed (hedge.py), and chooses after every epoch. Every epoch's
              functions are called while the one before runs, where both may run at once: another choice then costs
              nothing, and nobody waits for a start
    greedy    one allocation for the epochs expected, as in the paper (choice.py); as many more as delta lets come
              unnoticed are kept back for, at what they take at the least
    cirrus    greedy with a parameter server, and without delayed restart: 'modified Cirrus' of section IV-D
    siren     with S3; chooses before every epoch, and more for early ones, as siren.py does for stages
    lambdaml  the first choice, to the end
    fixed     an equal share of the limits for each epoch of the estimate. Epochs are alike, so that is lambdaml's
              choice, too; but it goes on with less when a share no longer suffices

None of them starts an epoch whose worst case is beyond a limit. All is folded from the history, and depends on nothing
else; the fold goes on from where it was for the last step, where that was the same run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, isfinite

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Apply, Finish, Step
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.beliefs.boundary import boundary
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.choice import Epochs, Options, furthest, reserved, single
from mlcd.planners.functions.course import Course, Folded, epochs_left, threshold, why_again
from mlcd.planners.functions.foresight import patience_s
from mlcd.planners.functions.hedge import Hedge, hedged
from mlcd.planners.functions.nouns import Allocation, Calibration, FunctionsTask, Planned, Stage, StagePlan, TrainEpochs
from mlcd.planners.functions.outlook import Outlook, after, before, certain, still_missing
from mlcd.planners.functions.siren import EARLY
from mlcd.planners.functions.space import configuration, frozen
from mlcd.planners.functions.standing import Ground, Standing
from mlcd.planners.functions.workload import StorageKind

MOST_TRIES = 3
"""Launches in a row that bring no epoch before the run is given up; each on another allocation."""
ONLINE = ("exact", "greedy", "cirrus")
DELAYED = ("exact", "greedy")
AHEAD = ("exact",)
"""Methods that have the functions of every next epoch started while one runs, not only those of another allocation."""
COLD = 2
"""Epochs of an allocation that are planned with their whole start."""
STORAGES = {"siren": (str(StorageKind.S3),), "cirrus": (str(StorageKind.VM_PS),)}


@dataclass(frozen=True)
class AdaptiveTraining:
    """Trains to the target within the limits. `epochs`: what it was estimated to take before it began."""

    calibration: Calibration
    method: str = "exact"
    epochs: float = 1.0
    _known: list[tuple[FunctionsTask, Ground]] = field(default_factory=list, init=False, repr=False, compare=False)
    _folded: list[Folded] = field(default_factory=list, init=False, repr=False, compare=False)

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next epoch, or how it ended. `job` is what is left of it."""
        if not isinstance(job.ask, FunctionsTask):
            raise ValueError(f"'{job.name}' is not a job on functions")
        now = Standing(job, history, self._ground(job.ask))
        return self._ended(now) or self._next_epoch(now, job.ask)

    def plan(self, job: Job, history: History) -> StagePlan | None:
        """What the first choice comes to if it takes as many epochs as are estimated; None if it is for fewer."""
        if not isinstance(job.ask, FunctionsTask):
            raise ValueError(f"'{job.name}' is not a job on functions")
        now = Standing(job, history, self._ground(job.ask))
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

    def _ground(self, limits: FunctionsTask) -> Ground:
        """Found once: a boundary takes a tenth of a second, and every epoch asks for it."""
        found = next((ground for known, ground in self._known if known == limits), None)
        if found is None:
            model = EpochModel(limits.workload, frozen(limits), self.calibration)
            ahead = self.method in AHEAD
            points = boundary(model, limits, storages=STORAGES.get(self.method), called_ahead=ahead)
            found = Ground(model, points, limits, ahead)
            self._known.append((limits, found))
        return found

    # What is done.

    def _ended(self, now: Standing) -> Finish | None:
        losses, target = now.losses, now.job.target
        if losses and not isfinite(losses[-1]):
            return Finish(f"the loss is {losses[-1]:g} after epoch {now.done}: try a lower learning rate")
        if losses and target is not None and target.reached(losses[-1]):
            where = now.history.runs[-1].configuration
            return Finish(f"reached {target} in {counted(now.done, 'epoch')}: {losses[-1]:.4g}", where)
        if now.done >= now.most and target is None:
            return Finish(
                f"all {counted(now.done, 'epoch')} are done: {losses[-1]:.4g}", now.history.runs[-1].configuration
            )
        if now.done >= now.most:
            return Finish(
                f"{target} was not reached in the {counted(now.done, 'epoch')} that it may take; {self._state(now)}"
            )
        if len(now.broken) >= MOST_TRIES:
            tried = f"epoch {now.done + 1} was tried {len(now.broken)} times"
            return Finish(f"{tried}; the last time: {now.broken[-1].ending}; {self._state(now)}")
        if not len(now.ground.points):
            wanted = ", ".join(STORAGES.get(self.method, self.calibration.links))
            return Finish(f"no allocation can be used with {wanted}: allow more functions, memory or storages")
        return None

    def _next_epoch(self, now: Standing, task: FunctionsTask) -> Apply | Finish:
        course = self._course(now)
        where = course.ahead[0]
        then = course.ahead[1] if self.method in DELAYED and len(course.ahead) > 1 else where
        if course.steady and now.works(last := now.last):
            # The clock runs between launches, too: what was chosen then comes out a little different now.
            where, then = last, last if then == where else then
        because = course.because if now.done and course.because else self._progress(now, where) + course.because
        if not now.may_use(where):
            fitting = now.fitting
            if not len(fitting) or (self.method == "lambdaml" and not now.broken):
                return Finish(self._out_of_limits(now, course))
            why = f"after: {now.broken[-1].ending}" if now.broken else "which could break a limit"
            planned, where = where, fitting.allocation(self._instead(now, fitting, course))
            then, because = where, f"epoch {now.done + 1}: {_instead_of(where, planned)}, {why}"
        known = then != where or (self.method in AHEAD and now.done + 1 < now.most)
        work = TrainEpochs(1, done=now.done, then=then if known and task.beside(where, then) else None)
        return Apply(
            configuration(task, where, work),
            because,
            float(task.workload.samples),
            work=work,
            most_s=patience_s(max(now.takes([where], cold=True)[0], now.ground.takes(where, cold=True)[0])),
        )

    def _instead(self, now: Standing, fitting: Options, course: Course) -> int:
        """What is best for the epochs left among these; what gets furthest, if nothing is."""
        stopped = now.broken and now.broken[-1].outcome is Outcome.AT_THE_LIMIT
        found = None if stopped else single(fitting, epochs_left(now, course.outlook), now.planned)
        return found[0][0] if found is not None else furthest(fitting, now.left)

    # How it is chosen.

    def _course(self, now: Standing) -> Course:
        """Folded over the epochs done: what was chosen first, and what each time that it was chosen again."""
        if self.method == "siren":
            return _of_siren(now, self._outlook(now))
        folded = self._folded[0] if self._folded and self._folded[0].before(now) else None
        if folded is None:
            begin = now.as_of(0)
            folded = Folded(begin, 0, self._chosen(begin, self._outlook(begin)))
        for epoch in range(folded.epoch + 1, now.done + 1):
            folded = self._after(folded, now.as_of(epoch), epoch)
        self._folded[:] = [folded]
        return folded.course

    def _after(self, folded: Folded, then: Standing, epoch: int) -> Folded:
        """One epoch on."""
        course, outlook = folded.course, None
        course = replace(course, ahead=course.ahead[1:] or course.ahead, because="")
        if self.method in ONLINE:
            outlook = self._outlook(then)
            why = why_again(then, course, outlook, folded.outlook)
            if why or self.method == "exact":
                course = self._chosen_again(then, outlook, course.ahead[0], why)
        steady = course.ahead[0] == folded.course.ahead[0]
        return Folded(then, epoch, replace(course, steady=steady), outlook)

    def _outlook(self, now: Standing) -> Outlook:
        """From the estimate alone where that is the method, or as long as there is nothing else."""
        if now.job.target is None:
            return certain(now.most)
        if not now.losses or self.method in ("lambdaml", "fixed"):
            return before(self.epochs, now.most)
        return after(now.losses, now.job.target, self.epochs, now.most)

    def _chosen_again(self, now: Standing, outlook: Outlook, old: Allocation, why: str) -> Course:
        """Lines 12 and 13; without delayed restart, the new allocation at once. `why`: empty if it always is."""
        if self.method not in DELAYED or not now.works(old):
            chosen = self._chosen(now, outlook)
            return replace(chosen, because=f"{why}: {_instead_of(chosen.ahead[0], old)}{chosen.because}")
        if self.method != "exact" and epochs_left(now, outlook) <= 1:
            return Course((old,), outlook, now.yardstick, because=f"{why}: one more on {old}")
        chosen, nothing_new = self._chosen(now.with_epoch_on(old), outlook, besides=1, old=old), not why
        new = _instead_of(chosen.ahead[0], old, " after this epoch")
        why = why or f"about {counted(round(outlook.epochs), 'epoch')} are expected now"
        because = "" if nothing_new and chosen.ahead[0] == old else f"{why}: {new}{chosen.because}"
        return replace(chosen, ahead=(old, *chosen.ahead), because=because)

    def _chosen(self, now: Standing, outlook: Outlook, besides: int = 0, old: Allocation | None = None) -> Course:
        """The best for the epochs left, but for those provided for; where nothing suffices, what gets furthest."""
        offered, risk = now.options, 0.0
        found: Epochs | None = None
        if self.method == "exact":
            hedge = _hedged(now, outlook, besides, old)
            found, risk = (hedge.epochs, hedge.risk) if hedge is not None else (None, 1.0)
        else:
            epochs = max(1, epochs_left(now, outlook) - besides)
            more = ceil(threshold(now) * outlook.epochs) if self.method in ONLINE else 0
            found = single(offered, epochs, reserved(offered, now.planned, epochs, more))
        if found is None:
            ahead: tuple[Allocation, ...] = (offered.allocation(furthest(offered, now.left)),)
        else:
            ahead = tuple(where for i, count in found for where in [offered.allocation(i)] * count)
        short = f", enough for {counted(len(ahead), 'epoch')}; with {risk:.0%} it takes more" if found and risk else ""
        return Course(ahead, outlook, now.yardstick, risk, short)

    # What is said.

    def _progress(self, now: Standing, where: Allocation) -> str:
        outlook, target = self._outlook(now), now.job.target
        if target is None or outlook.in_sight:
            return f"epoch {now.done + 1} of about {max(round(outlook.epochs), now.done + 1)}: {where}"
        return f"epoch {now.done + 1}: {target} is not in sight, {outlook.tendency}"

    def _out_of_limits(self, now: Standing, course: Course) -> str:
        """Which limit, what one more epoch would take of it, how far it came, and how many epochs are missing."""
        left, offered, (longer, dearer) = now.left, now.options, now.worst
        seconds, usd = float(offered.cold[0].min()), float(offered.cold[1].min())
        if self.method == "lambdaml":
            seconds, usd = now.takes(course.ahead[:1])
        told = []
        if left.budget_usd is not None and usd * dearer > left.budget_usd:
            over = format_usd(max(0.0, left.budget_usd))
            told.append(f"the budget: an epoch can cost {format_usd(usd * dearer)}, {over} is left")
        if left.deadline_s is not None and seconds * longer > left.deadline_s:
            over = format_duration(max(0.0, left.deadline_s))
            told.append(f"the deadline: an epoch can take {format_duration(seconds * longer)}, {over} is left")
        why = " and ".join(told) or "the budget and the deadline together: no allocation keeps both for one more epoch"
        return f"one more epoch does not fit into {why}; {self._state(now)}"

    def _state(self, now: Standing) -> str:
        """The loss, and what is missing."""
        if not now.losses:
            return "no epoch is done"
        outlook, target = self._outlook(now), now.job.target
        told = f"after {counted(now.done, 'epoch')} the loss is {now.losses[-1]:.4g}"
        if target is None:
            return told
        if not outlook.in_sight:
            return f"{told}; {target} is below what was ever seen, {outlook.tendency}"
        missing = still_missing(now.losses, target)
        return (
            f"{told}; about {counted(ceil(missing), 'epoch')} more would reach {target}" if isfinite(missing) else told
        )


def _hedged(now: Standing, outlook: Outlook, besides: int, old: Allocation | None) -> Hedge | None:
    """For all epochs that may be needed after those provided for."""
    goal, offered = now.planned, now.options
    gone = now.history.spent_usd if goal.objective is Objective.CHEAPEST else now.history.elapsed_s
    place = None if old is None else offered.place(old)
    return hedged(offered, outlook.chances(now.done + besides), goal, gone, place)


def _of_siren(now: Standing, outlook: Outlook) -> Course:
    """The best within this epoch's share: its least, and of what is over more for early epochs. No delayed restart."""
    offered, left = now.options, now.planned
    epochs = now.done + epochs_left(now, outlook)
    eager = np.linspace(EARLY, 1.0, epochs)[now.done :]
    patient = np.linspace(1.0, EARLY, epochs)[now.done :]

    def share(limit: float | None, least: float, wish: Floats) -> float | None:
        over = None if limit is None else limit - least * len(wish)
        return None if over is None else least + max(0.0, over) * float(wish[0] / wish.sum())

    cheapest = now.job.goal.objective is Objective.CHEAPEST
    goal = replace(
        left,
        budget_usd=left.budget_usd if cheapest else share(left.budget_usd, float(offered.usd.min()), eager),
        deadline_s=share(left.deadline_s, float(offered.seconds.min()), patient) if cheapest else left.deadline_s,
    )
    found = single(offered, 1, goal)
    return Course((offered.allocation(found[0][0] if found else furthest(offered, now.left)),), outlook, now.yardstick)


def _instead_of(new: Allocation, old: Allocation, when: str = "") -> str:
    return f"still {old}" if new == old else f"{new}{when}, instead of {old}"
