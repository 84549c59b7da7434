"""The course of a training run: what its epochs to come run on, what that was chosen for, and when to choose again.

Line 11 of Algorithm 2 of CE-scaling, |e* - e| / e > delta, and what else is a reason: see adaptive.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from mlcd.core.units import counted
from mlcd.planners.functions.nouns import DELTA, Allocation, FunctionsTask
from mlcd.planners.functions.outlook import Outlook
from mlcd.planners.functions.standing import Standing


@dataclass(frozen=True)
class Course:
    """What the epochs to come are to run on, what that was chosen for, and why, if it was chosen just now.

    `yardstick`: what an epoch was planned to take and to cost then, over what the model says. `steady`: the next epoch
    is planned as the last one was. `risk`: the chance that more epochs are needed than what is left was taken to pay.
    """

    ahead: tuple[Allocation, ...]
    outlook: Outlook
    yardstick: tuple[float, float]
    risk: float = 0.0
    because: str = ""
    steady: bool = False


@dataclass(frozen=True)
class Folded:
    """The course after so many epochs, as it stood then, and how many were expected: the fold goes on from here."""

    then: Standing
    epoch: int
    course: Course
    outlook: Outlook | None = None

    def before(self, now: Standing) -> bool:
        """Whether this is the course that the run which stands so now had then."""
        if self.epoch > now.done or now.ground is not self.then.ground or now.besides != self.then.besides:
            return False
        runs, known = now.runs_until(self.epoch), self.then.history.runs
        same = len(runs) == len(known) and all(run is each for run, each in zip(runs, known, strict=True))
        job, then = now.job, self.then.job
        return same and (job.goal, job.target, now.most) == (then.goal, then.target, self.then.most)


def why_again(now: Standing, course: Course, outlook: Outlook, earlier: Outlook | None) -> str:
    """Line 11, for two epochs in a row; or what is left is too little for what was chosen."""
    delta, was = threshold(now), course.outlook
    both = [each for each in (earlier, outlook) if each is not None and each.fitted]
    if _moved([each.epochs / was.epochs - 1 for each in both], delta):
        if not outlook.in_sight:
            return f"{now.job.target} is not in sight, {outlook.tendency}"
        return f"{counted(round(outlook.epochs), 'epoch')} are expected now, not {round(was.epochs)}"
    if broken := [where for where in course.ahead if not now.works(where)]:
        return f"{broken[0]} has failed"
    slower, dearer = (here / then for here, then in zip(now.yardstick, course.yardstick, strict=True))
    if max(abs(slower - 1), abs(dearer - 1)) > delta:
        return f"an epoch takes {slower:.2g} and costs {dearer:.2g} times what was planned"
    return "" if now.affords(course.ahead) else "what is left no longer suffices"


def _moved(moves: Sequence[float], delta: float) -> bool:
    """To the same side, twice."""
    return len(moves) == 2 and (min(moves) > delta or max(moves) < -delta)


def threshold(now: Standing) -> float:
    """delta."""
    return now.job.ask.delta if isinstance(now.job.ask, FunctionsTask) else DELTA


def epochs_left(now: Standing, outlook: Outlook) -> int:
    """Epochs that are expected from here; the target was not reached yet, so at least one."""
    return max(1, ceil(outlook.epochs - now.done - 1e-6))
