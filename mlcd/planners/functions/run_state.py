"""The state of a training run on functions: epochs so far, what is left of the limits, and usable allocations."""

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
from mlcd.planners.functions.epoch_model.boundary import Boundary
from mlcd.planners.functions.epoch_model.calibration import LEAST_SPREAD, spread
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, evidence_of
from mlcd.planners.functions.space import allocation_at

RECENT_EPOCHS = 5
"""The pace, measured over modelled, is a median over so many epochs."""

MORE_MEMORY = 1.5
"""After an epoch ran out of memory, only allocations with so many times its memory are used: the boundary has points at
every megabyte."""
TIMEOUT_FACTOR, TIMEOUT_GRACE_S = 4.0, 30.0
"""A launch times out after so many times its planned time, and so many seconds more."""


def launch_timeout_s(planned_s: float) -> float:
    """The timeout of a launch. Its constant part lets a short launch wait for its functions to start."""
    return TIMEOUT_FACTOR * planned_s + TIMEOUT_GRACE_S


def limits_left(goal: Goal, history: History, factor: float = 1.0) -> Goal:
    """What is left of the limits, divided by `factor`: how many times their plan its stages may take."""
    budget = None if goal.budget_usd is None else max(0.0, goal.budget_usd - history.spent_usd) / factor
    deadline = None if goal.deadline_s is None else max(0.0, goal.deadline_s - history.elapsed_s) / factor
    return replace(goal, budget_usd=budget, deadline_s=deadline)


@dataclass(frozen=True, eq=False)
class RunConstants:
    """What does not change during a run: the model of an epoch, and the Pareto boundary of all allocations.

    `called_ahead`: where both may run at once, the functions of an epoch start while the one before runs.
    """

    model: EpochModel
    boundary: Boundary
    task: FunctionsTask
    called_ahead: bool = False
    _epochs: dict[tuple[Allocation, bool], tuple[float, float]] = field(default_factory=dict, init=False, repr=False)
    _options: dict[tuple[frozenset[Allocation], int], Boundary] = field(default_factory=dict, init=False, repr=False)

    def seconds_and_usd(self, where: Allocation, cold: bool = False) -> tuple[float, float]:
        """Modelled seconds and dollars of one epoch. `cold`: its functions were not started during the one before."""
        ahead = self.called_ahead and not cold and self.task.fit_together(where, where)
        if (where, ahead) not in self._epochs:
            self._epochs[where, ahead] = self.model.epoch_s(where, ahead), self.model.epoch_usd(where, ahead)
        return self._epochs[where, ahead]

    def modelled(self, run: Measurement) -> tuple[float, float]:
        """Modelled seconds and dollars of a measured epoch, less the part of the start-up that it did not wait for."""
        where = allocation_at(run.configuration)
        seconds, usd = self.seconds_and_usd(where, cold=True)
        if not self.called_ahead:
            return seconds, usd
        hidden_s = max(0.0, self.model.parts(where).start_s - evidence_of(run).epochs[-1].start_s)
        return seconds - hidden_s, usd - hidden_s * self.model.tariff.storage(where.storage).usd_per_minute / 60

    def options(self, failed: frozenset[Allocation], too_small_mb: int) -> Boundary:
        """The boundary without failed allocations; all of it if nothing else is left."""
        if (failed, too_small_mb) not in self._options:
            points = self.boundary
            kept = points.memory_mb > too_small_mb
            if failed:
                kept &= np.array([points.allocation(i) not in failed for i in range(len(points))], dtype=bool)
            self._options[failed, too_small_mb] = points.only(kept) if kept.any() else points
        return self._options[failed, too_small_mb]


@dataclass(frozen=True, eq=False)
class RunState:
    """A run's state, derived from its history. `job` is what is left of it."""

    job: Job
    history: History
    constants: RunConstants

    @cached_property
    def losses(self) -> tuple[float, ...]:
        """The loss after each epoch; of a repeated epoch the last one."""
        by_epoch = {epoch.number: epoch.loss for run in self.history.runs for epoch in evidence_of(run).epochs}
        return tuple(by_epoch[number] for number in sorted(by_epoch))

    @cached_property
    def trained(self) -> list[Measurement]:
        """The launches that completed an epoch."""
        return [run for run in self.history.runs if evidence_of(run).epochs]

    @property
    def done(self) -> int:
        """The number of completed epochs."""
        return len(self.losses)

    @property
    def most(self) -> int:
        """The maximal number of epochs of the whole job."""
        whole = self.job.work_samples + self.history.saved_samples
        return max(1, floor(whole / self.constants.model.workload.samples + 1e-9))

    @property
    def failed_launches(self) -> tuple[Measurement, ...]:
        """The launches since the last completed epoch."""
        ends = [i for i, run in enumerate(self.history.runs) if evidence_of(run).epochs]
        return self.history.runs[max(ends[-1] + 1 if ends else 0, self.history.ended_runs) :]

    @property
    def left(self) -> Goal:
        """What is left of the limits."""
        return limits_left(self.job.goal, self.history)

    @property
    def margin(self) -> float:
        """The safety factor of a plan: the calibration's spread at first, a small one after some measured epochs."""
        known = len(self.trained) >= RECENT_EPOCHS
        return exp(LEAST_SPREAD) if known else spread(self.constants.model.calibration)

    @property
    def planned(self) -> Goal:
        """The limits for a plan: what is left, less the margin."""
        return limits_left(self.job.goal, self.history, self.margin)

    @property
    def planned_factors(self) -> tuple[float, float]:
        """Planned over modelled seconds of an epoch, and planned over modelled dollars."""
        slower, dearer = self.pace
        return slower * self.margin, dearer * self.margin

    @cached_property
    def pace(self) -> tuple[float, float]:
        """Measured over modelled seconds of an epoch, and the same for dollars: medians over recent epochs."""
        recent = self.trained[-RECENT_EPOCHS:]
        if not recent:
            return 1.0, 1.0
        modelled = [self.constants.modelled(run) for run in recent]
        slower = median(run.seconds / seconds for run, (seconds, _) in zip(recent, modelled, strict=True))
        return slower, median(run.usd / usd for run, (_, usd) in zip(recent, modelled, strict=True))

    @cached_property
    def failed(self) -> frozenset[Allocation]:
        """The allocations on which an epoch failed; failures by bad luck count only until the next completed epoch."""
        own = [run for run in self.history.current_runs if not evidence_of(run).epochs and not run.outcome.is_bad_luck]
        return frozenset(allocation_at(run.configuration) for run in (*own, *self.failed_launches))

    @cached_property
    def too_little_mb(self) -> int:
        """Allocations with this much memory or less are not used; 0 if no launch ran out of memory."""
        failed = [allocation_at(run.configuration) for run in self.history.runs if run.outcome is Outcome.OUT_OF_MEMORY]
        return round(MORE_MEMORY * max((where.memory_mb for where in failed), default=0))

    @cached_property
    def options(self) -> Boundary:
        """The usable allocations on the Pareto boundary, at the current pace."""
        return self.constants.options(self.failed, self.too_little_mb).paced(*self.pace)

    @property
    def worst(self) -> tuple[float, float]:
        """Worst case over expectation of an epoch's seconds, and of its dollars.

        Epochs that were faster than modelled do not lower the worst case.
        """
        slower, dearer = self.pace
        factor = spread(self.constants.model.calibration)
        return factor / min(1.0, slower), factor / min(1.0, dearer)

    def seconds_and_usd(self, ahead: Sequence[Allocation], cold: bool = False) -> tuple[float, float]:
        """Expected seconds and dollars of these epochs together, at the current pace."""
        each = [(count, *self.constants.seconds_and_usd(where, cold)) for where, count in Counter(ahead).items()]
        slower, dearer = self.pace
        return slower * sum(n * seconds for n, seconds, _ in each), dearer * sum(n * usd for n, _, usd in each)

    def is_usable(self, where: Allocation) -> bool:
        """Whether it has not failed, and has more memory than any allocation that was too small."""
        return where not in self.failed and where.memory_mb > self.too_little_mb

    def is_within_limits(self, where: Allocation) -> bool:
        """Whether an epoch may be started there: usable, and within the limits even in the worst case."""
        (seconds, usd), (longer, dearer) = self.seconds_and_usd([where], cold=True), self.worst
        return self.is_usable(where) and self.left.allows(usd * dearer, seconds * longer)

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Cumulative dollars and seconds of the runs, from none on."""
        each = ([run.usd for run in self.history.runs], [run.seconds for run in self.history.runs])
        usd, seconds = (list(accumulate(values, initial=0.0)) for values in each)
        return usd, seconds

    @cached_property
    def _runs_by_epoch(self) -> list[int]:
        """For each epoch, from 0 on, how many runs there were when it ended."""
        last = [0] * (self.done + 1)
        for i, run in enumerate(self.history.runs):
            for epoch in evidence_of(run).epochs:
                last[min(epoch.number, self.done)] = i + 1
        return list(accumulate(last, max))

    @cached_property
    def other_spending(self) -> tuple[float, float]:
        """Dollars and seconds spent on other things than runs, such as probes; without the rounding errors of sums."""
        (usd, seconds), history = self._sums, self.history
        return round(history.spent_usd - usd[-1], 9), round(history.elapsed_s - seconds[-1], 6)

    def runs_until(self, epoch: int) -> tuple[Measurement, ...]:
        """The runs up to the end of that epoch."""
        return self.history.runs[: self._runs_by_epoch[epoch]]

    def as_of(self, epoch: int) -> RunState:
        """The state when that epoch had ended."""
        runs, (usd, seconds), (more_usd, more_s) = self.runs_until(epoch), self._sums, self.other_spending
        then = replace(
            self.history, runs=runs, spent_usd=more_usd + usd[len(runs)], elapsed_s=more_s + seconds[len(runs)]
        )
        more = self.history.saved_samples - then.saved_samples
        return replace(self, history=then, job=replace(self.job, work_samples=self.job.work_samples + more))

    def with_epoch_on(self, where: Allocation) -> RunState:
        """The expected state after one more epoch there, except for its loss."""
        seconds, usd = self.seconds_and_usd([where])
        history = self.history
        then = replace(history, spent_usd=history.spent_usd + usd, elapsed_s=history.elapsed_s + seconds)
        return replace(self, history=then)
