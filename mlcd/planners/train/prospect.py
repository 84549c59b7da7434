"""What finishing is expected to take on every configuration, what a probe takes, and what could then be certified.

Symbols are those of `net_value.py`, which chooses by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Self

import numpy as np

from mlcd.configuration import Floats, Space
from mlcd.guarantee import forecast, safe
from mlcd.history import History
from mlcd.job import Job, Objective
from mlcd.measurement import Measurement, Z
from mlcd.modeling.memory_need import Mask
from mlcd.planners.train.speed_belief import belief_of

UNSAFE_PENALTY = 3.0
"""While nothing is certified, V0 is this many times the best that is to be expected."""
TYPICAL_ERROR = 0.03
"""Relative error of a probe, before one was made."""
ALMOST_ALL = 1 - 1e-9
"""Of the work, that a probe may be credited with: no share of a finish that never comes would be no number."""


@dataclass(frozen=True)
class Prospect:
    """What is expected and what is certified.

    `finish_s`: seconds to finish for every surface (rows) and configuration (columns), infinite where the job does not
    fit. `ruled_out`: what is sure to run out of memory. `error`: of a whole probe. `share`: what a look takes of one.
    """

    job: Job
    space: Space
    history: History
    safe: tuple[Measurement, ...]
    finish_s: Floats
    ruled_out: Mask
    error: float
    share: float

    @classmethod
    def of(cls, job: Job, space: Space, history: History, seed: int, look: float | None) -> Self:
        """As it stands after what was seen."""
        belief = belief_of(job, space, history, seed)
        finish_s = space.startup_limit_s + job.work_samples * np.exp(-belief.log_speed)
        finish_s = np.where(belief.fits, finish_s, np.inf)
        certified, error = tuple(safe(job, space, history)), _error(space, history)
        return cls(job, space, history, certified, finish_s, belief.ruled_out, error, look or 1.0)

    @property
    def fast(self) -> bool:
        """Whether time is the objective."""
        return self.job.goal.objective is Objective.FASTEST

    @cached_property
    def s_per_usd(self) -> float:
        """The worth of a dollar in seconds: what the fastest finish is expected to take, over what it costs.

        Before anything has run, nobody knows what the job costs where it is fastest: over the cheapest finish.
        """
        usd = self.finish_s * self.space.usd_per_s
        fastest, row = self.finish_s.argmin(axis=1), np.arange(len(usd))
        shortest_s, costs_usd = self.finish_s[row, fastest], usd[row, fastest] if self.history.good else usd.min(axis=1)
        runs = np.isfinite(shortest_s)
        return float(np.median(shortest_s[runs]) / np.median(costs_usd[runs])) if runs.any() else 0.0

    def value(self, finish_s: Floats) -> Floats:
        """J: what finishing takes of the objective."""
        return finish_s if self.fast else finish_s * self.space.usd_per_s

    def price(self, usd: Floats | float, seconds: Floats | float) -> Floats | float:
        """q: what probes take of the objective. Where time is the objective, money that no budget limits counts too."""
        if not self.fast:
            return usd
        return seconds if self.job.goal.budget_usd is not None else seconds + self.s_per_usd * usd

    def credit(self) -> Floats:
        """c(D) on each surface. Of a round, only the best checkpoint can be kept."""
        if not self.job.checkpoints:
            return np.zeros((1, len(self.space)))
        startup_s = self.space.startup_limit_s
        works_s = np.maximum(0.0, self.share * self.space.probe_s - startup_s)
        credit: Floats = np.minimum(ALMOST_ALL, works_s / np.maximum(self.finish_s - startup_s, 1e-9))
        return credit

    def v0(self) -> float:
        """V0: the best that is certified; while nothing is, more than the best that is to be expected."""
        if self.safe:
            return min(self.measured_value(m) for m in self.safe)
        certified = self.certifiable(self.space.probe_usd, self.space.probe_s)
        value = self.value(self.finish_s)
        best = np.where(certified, value, np.inf).min(axis=1)
        best = best if np.isfinite(best).any() else value.min(axis=1)
        finite = best[np.isfinite(best)]
        return UNSAFE_PENALTY * float(np.median(finite)) if finite.size else 0.0

    def fallback(self, usd: Floats, seconds: Floats) -> Floats:
        """V0'(D): the best that is still certified once so much more is gone; V0 while nothing is."""
        if not self.safe:
            return np.full(usd.shape, self.v0())
        fallback = np.full(usd.shape, np.inf)
        for m in self.safe:
            ahead = forecast(self.job, self.space, m)
            kept = self.kept(usd + ahead.worst_usd, seconds + ahead.worst_seconds)
            fallback = np.where(kept, np.minimum(fallback, self.measured_value(m)), fallback)
        return fallback

    def certifiable(self, usd: Floats, seconds: Floats) -> Mask:
        """Whether D, probed for so much, would then be certified on each surface: by a look, or by the whole probe."""
        longest_s = self._longest_s(usd, seconds) * np.exp(-Z * self.error)
        if self.share < 1:
            by_look_s = self._longest_s(self.share * usd, self.share * seconds)
            longest_s = np.maximum(longest_s, by_look_s * np.exp(-Z * self.error / sqrt(self.share)))
        certified: Mask = self.finish_s <= longest_s
        return certified

    def _longest_s(self, usd: Floats, seconds: Floats) -> Floats:
        """How long finishing may take where so much more is gone before it; finite, so that what fails never fits."""
        goal, history = self.job.goal, self.history
        longest = np.full(len(self.space), np.finfo(float).max)
        if goal.budget_usd is not None:
            longest = np.minimum(longest, (goal.budget_usd - history.spent_usd - usd) / self.space.usd_per_s)
        if goal.deadline_s is not None:
            longest = np.minimum(longest, goal.deadline_s - history.elapsed_s - seconds)
        return longest

    def kept(self, more_usd: Floats | float, more_s: Floats | float) -> Mask:
        """Whether the limits hold if so much more is used."""
        goal, history = self.job.goal, self.history
        inside: Mask = np.isfinite(more_s)
        if goal.budget_usd is not None:
            inside = inside & (history.spent_usd + more_usd <= goal.budget_usd)
        if goal.deadline_s is not None:
            inside = inside & (history.elapsed_s + more_s <= goal.deadline_s)
        return inside

    def measured_value(self, measurement: Measurement) -> float:
        """J of what was measured."""
        ahead = forecast(self.job, self.space, measurement)
        return ahead.seconds if self.fast else ahead.usd


def _error(space: Space, history: History) -> float:
    """The relative error of a whole probe, as far as probes have shown it."""
    whole = [
        m.rel_error * sqrt(min(1.0, m.seconds / space.probe_time.seconds(m.configuration.nodes)))
        for m in history.measurements
        if m.ok
    ]
    return float(np.median(whole)) if whole else TYPICAL_ERROR
