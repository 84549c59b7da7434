"""The state of a training run on functions: what its epochs came to, what is left, and what may be used for more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from math import exp, floor
from statistics import median

import numpy as np

from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.functions.beliefs.boundary import Boundary
from mlcd.planners.functions.beliefs.calibration import LEAST_SPREAD, spread
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, evidence_of
from mlcd.planners.functions.space import allocated

RECENT = 5
"""Epochs that say how an epoch compares with what the model says of it."""

CLEARLY_MORE = 1.5
"""Memory that is tried after too little of it: a boundary has points at every megabyte."""
SLOWEST, GRACE_S = 4.0, 30.0
"""A launch is given up once it has taken so many times what was planned for it, and so much longer."""


def patience_s(planned_s: float) -> float:
    """How long a launch may take, whatever the limits: a short one may still wait for its functions to be up."""
    return SLOWEST * planned_s + GRACE_S


def left_of(goal: Goal, history: History, factor: float = 1.0) -> Goal:
    """What is left of the limits for a plan whose stages may take so many times what is planned for them."""
    budget = None if goal.budget_usd is None else max(0.0, goal.budget_usd - history.spent_usd) / factor
    deadline = None if goal.deadline_s is None else max(0.0, goal.deadline_s - history.elapsed_s) / factor
    return replace(goal, budget_usd=budget, deadline_s=deadline)


@dataclass(frozen=True, eq=False)
class Ground:
    """What does not change while it trains: the model of an epoch, and all allocations that are worth anything.

    `called_ahead`: where both may run at once, the functions of an epoch start while the one before runs.
    """

    model: EpochModel
    points: Boundary
    limits: FunctionsTask
    called_ahead: bool = False
    _takes: dict[tuple[Allocation, bool], tuple[float, float]] = field(default_factory=dict, init=False, repr=False)
    _options: dict[tuple[frozenset[Allocation], int], Boundary] = field(default_factory=dict, init=False, repr=False)

    def takes(self, where: Allocation, cold: bool = False) -> tuple[float, float]:
        """Seconds and dollars of one epoch there, after others like it; `cold`: its functions were not called ahead."""
        ahead = self.called_ahead and not cold and self.limits.beside(where, where)
        if (where, ahead) not in self._takes:
            self._takes[where, ahead] = self.model.epoch_s(where, ahead), self.model.epoch_usd(where, ahead)
        return self._takes[where, ahead]

    def expected(self, run: Measurement) -> tuple[float, float]:
        """Seconds and dollars of this very epoch by the model, if as much of its start was hidden as it says."""
        where = allocated(run.configuration)
        seconds, usd = self.takes(where, cold=True)
        if not self.called_ahead:
            return seconds, usd
        hidden_s = max(0.0, self.model.parts(where).start_s - evidence_of(run).epochs[-1].start_s)
        return seconds - hidden_s, usd - hidden_s * self.model.tariff.storage(where.storage).usd_per_minute / 60

    def options(self, failed: frozenset[Allocation], too_small_mb: int) -> Boundary:
        """What may be used: nothing that has failed, unless that is all there is."""
        if (failed, too_small_mb) not in self._options:
            points = self.points
            kept = points.memory_mb > too_small_mb
            if failed:
                kept &= np.array([points.allocation(i) not in failed for i in range(len(points))], dtype=bool)
            self._options[failed, too_small_mb] = points.only(kept) if kept.any() else points
        return self._options[failed, too_small_mb]


@dataclass(frozen=True, eq=False)
class RunState:
    """`job` is what is left of it."""

    job: Job
    history: History
    ground: Ground

    @cached_property
    def losses(self) -> tuple[float, ...]:
        """After each epoch; one that was done again counts as it came out last."""
        found = {epoch.number: epoch.loss for run in self.history.runs for epoch in evidence_of(run).epochs}
        return tuple(found[number] for number in sorted(found))

    @cached_property
    def trained(self) -> list[Measurement]:
        """Launches that brought an epoch."""
        return [run for run in self.history.runs if evidence_of(run).epochs]

    @property
    def done(self) -> int:
        """Epochs."""
        return len(self.losses)

    @property
    def most(self) -> int:
        """Epochs that the job may take in all; of what is left, a last sample always is."""
        whole = self.job.work_samples + self.history.saved_samples
        return max(1, floor(whole / self.ground.model.workload.samples + 1e-9))

    @property
    def broken(self) -> tuple[Measurement, ...]:
        """The launches since the last epoch: none of them brought one."""
        ends = [i for i, run in enumerate(self.history.runs) if evidence_of(run).epochs]
        return self.history.runs[max(ends[-1] + 1 if ends else 0, self.history.ended_runs) :]

    @property
    def left(self) -> Goal:
        """The limits, less what is gone."""
        return left_of(self.job.goal, self.history)

    @property
    def margin(self) -> float:
        """What a plan leaves over: all of the calibration's spread at first, little once some epochs have shown it."""
        known = len(self.trained) >= RECENT
        return exp(LEAST_SPREAD) if known else spread(self.ground.model.calibration)

    @property
    def planned(self) -> Goal:
        """What a plan may use of what is left."""
        return left_of(self.job.goal, self.history, self.margin)

    @property
    def yardstick(self) -> tuple[float, float]:
        """How many times what the model says of an epoch is planned for it: seconds, dollars."""
        slower, dearer = self.pace
        return slower * self.margin, dearer * self.margin

    @cached_property
    def pace(self) -> tuple[float, float]:
        """How many times what the model says an epoch has taken of late, and cost; the middle of some."""
        recent = self.trained[-RECENT:]
        if not recent:
            return 1.0, 1.0
        modelled = [self.ground.expected(run) for run in recent]
        slower = median(run.seconds / seconds for run, (seconds, _) in zip(recent, modelled, strict=True))
        return slower, median(run.usd / usd for run, (_, usd) in zip(recent, modelled, strict=True))

    @cached_property
    def failed(self) -> frozenset[Allocation]:
        """Where no epoch came to its end; of what was bad luck, only since the last epoch."""
        own = [run for run in self.history.current_runs if not evidence_of(run).epochs and not run.outcome.is_bad_luck]
        return frozenset(allocated(run.configuration) for run in (*own, *self.broken))

    @cached_property
    def too_small_mb(self) -> int:
        """Memory that is taken not to be enough; 0 where it always was."""
        small = [allocated(run.configuration) for run in self.history.runs if run.outcome is Outcome.OUT_OF_MEMORY]
        return round(CLEARLY_MORE * max((where.memory_mb for where in small), default=0))

    @cached_property
    def options(self) -> Boundary:
        """What may be used, at the pace of late."""
        return self.ground.options(self.failed, self.too_small_mb).paced(*self.pace)

    @property
    def worst(self) -> tuple[float, float]:
        """How many times what is expected an epoch can take, and cost. That some were quick says nothing of that."""
        slower, dearer = self.pace
        factor = spread(self.ground.model.calibration)
        return factor / min(1.0, slower), factor / min(1.0, dearer)

    def takes(self, ahead: Sequence[Allocation], cold: bool = False) -> tuple[float, float]:
        """Seconds and dollars that these epochs are expected to take."""
        each = [(count, *self.ground.takes(where, cold)) for where, count in Counter(ahead).items()]
        slower, dearer = self.pace
        return slower * sum(n * seconds for n, seconds, _ in each), dearer * sum(n * usd for n, _, usd in each)

    def works(self, where: Allocation) -> bool:
        """As far as is known."""
        return where not in self.failed and where.memory_mb > self.too_small_mb

    def may_use(self, where: Allocation) -> bool:
        """Whether an epoch may be started there: it works, and is within the limits even at its worst."""
        (seconds, usd), (longer, dearer) = self.takes([where], cold=True), self.worst
        return self.works(where) and self.left.allows(usd * dearer, seconds * longer)

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Dollars and seconds of the first runs, for each number of them."""
        each = ([run.usd for run in self.history.runs], [run.seconds for run in self.history.runs])
        usd, seconds = (list(accumulate(values, initial=0.0)) for values in each)
        return usd, seconds

    @cached_property
    def _ends(self) -> list[int]:
        """For each epoch, from none on, how many runs there were when it had ended."""
        last = [0] * (self.done + 1)
        for i, run in enumerate(self.history.runs):
            for epoch in evidence_of(run).epochs:
                last[min(epoch.number, self.done)] = i + 1
        return list(accumulate(last, max))

    @cached_property
    def besides(self) -> tuple[float, float]:
        """Dollars and seconds that went on anything but the runs; rounded, so that the sums' rounding is not in it."""
        (usd, seconds), history = self._sums, self.history
        return round(history.spent_usd - usd[-1], 9), round(history.elapsed_s - seconds[-1], 6)

    def runs_until(self, epoch: int) -> tuple[Measurement, ...]:
        """That there were when it had ended."""
        return self.history.runs[: self._ends[epoch]]

    def as_of(self, epoch: int) -> RunState:
        """As it stood when that epoch had ended."""
        runs, (usd, seconds), (more_usd, more_s) = self.runs_until(epoch), self._sums, self.besides
        then = replace(
            self.history, runs=runs, spent_usd=more_usd + usd[len(runs)], elapsed_s=more_s + seconds[len(runs)]
        )
        more = self.history.saved_samples - then.saved_samples
        return replace(self, history=then, job=replace(self.job, work_samples=self.job.work_samples + more))

    def with_epoch_on(self, where: Allocation) -> RunState:
        """As it will stand after one more epoch there, but for its loss."""
        seconds, usd = self.takes([where])
        history = self.history
        then = replace(history, spent_usd=history.spent_usd + usd, elapsed_s=history.elapsed_s + seconds)
        return replace(self, history=then)
