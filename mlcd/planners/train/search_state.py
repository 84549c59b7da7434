"""The state of a search: expected finishing time everywhere, price of each probe, what a probe could certify.

`net_value.py` chooses the next probe by it, and defines the symbols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Mask, Space
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import (
    Trial,
    forecasts,
    likely_margin,
    may_start_on_trial,
    needed_confidence,
    trial_duration_s,
    trials,
    with_fallback_confidence,
)
from mlcd.core.guarantee import allowed_probes, certifiable, certifiable_forecasts, limits_allow
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import SMALLEST_ERROR, Measurement
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.speed_belief import belief_of, ruled_out_by

Counts = NDArray[np.intp]

UNSAFE_PENALTY = 10.0
"""While nothing is certified, V0 is this many times the best expected objective."""
NOT_RUN_PENALTY = 3.0
"""The same without a limit, where whatever runs is certified."""
HOPELESS = 0.02
"""If no configuration has a higher chance to fit, the probe is chosen by how many others its failure would rule out."""
MOST_LAUNCHES = 12
"""Most measurements of one configuration, one after the other or on several clusters at once."""
FURTHER_LAUNCHES = (1, 3, 7, 11)
"""Numbers of further launches that are tried out when computing whether a configuration could be certified."""
TYPICAL_ERROR = 0.03
"""Relative error of a probe, before any was made."""
ALMOST_ALL = 1 - 1e-9
"""Upper bound of the share of the work that a probe is credited with: it keeps 0 x infinity from becoming nan."""


@dataclass(frozen=True)
class SearchState:
    """What a search expects and what it has certified.

    `safe`: certified measurements. `finish_s`: seconds to finish by posterior sample (rows) and configuration
    (columns), infinite where the job does not fit. `ruled_out`: sure to run out of memory. `error`: relative error of
    a whole probe. `share`: the part of a probe that is run before it may be stopped early; 1 for whole probes.
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
        """The state after the measurements in `history`."""
        belief = belief_of(job, space, history, seed)
        finish_s = space.startup_limit_s + job.work_samples * np.exp(-belief.log_speed)
        finish_s = np.where(belief.fits, finish_s, np.inf)
        certified, error = tuple(certifiable(job, space, history)), _error(space, history)
        return cls(job, space, history, certified, finish_s, belief.ruled_out, error, look or 1.0)

    @property
    def fast(self) -> bool:
        """Whether time is the objective."""
        return self.job.goal.objective is Objective.FASTEST

    @cached_property
    def s_per_usd(self) -> float:
        """Value of a dollar in seconds: expected seconds of the fastest finish over its dollars.

        Before anything has run, over the dollars of the cheapest finish: the price of the fastest is unknown then.
        """
        usd = self.space.usd(self.finish_s)
        fastest, row = self.finish_s.argmin(axis=1), np.arange(len(usd))
        shortest_s, costs_usd = self.finish_s[row, fastest], usd[row, fastest] if self.history.good else usd.min(axis=1)
        runs = np.isfinite(shortest_s)
        return float(np.median(shortest_s[runs]) / np.median(costs_usd[runs])) if runs.any() else 0.0

    def value(self, finish_s: Floats) -> Floats:
        """J: the objective of finishing in `finish_s`."""
        if self.fast:
            return finish_s
        worst_s = finish_s * np.exp(self._margins_of_one(1.0, 0, likely=False))
        return self.space.expected_usd(finish_s, worst_s, self.job.goal.deadline_s)

    def price(self, usd: Floats | float, seconds: Floats | float) -> Floats | float:
        """q: the cost of probes in the objective. For 'fastest' without a budget, dollars are converted to seconds."""
        if not self.fast:
            return usd
        return seconds if self.job.goal.budget_usd is not None else seconds + self.s_per_usd * usd

    def credit(self) -> Floats:
        """c(D) in each sample: the share of the work that a probe does itself, saved by its checkpoint."""
        if not self.job.checkpoints:
            return np.zeros((1, len(self.space)))
        startup_s = self.space.startup_limit_s
        works_s = np.maximum(0.0, self.share * self.space.probe_s - startup_s)
        credit: Floats = np.minimum(ALMOST_ALL, works_s / np.maximum(self.finish_s - startup_s, 1e-9))
        return credit

    @cached_property
    def v0(self) -> float:
        """V0: the best certified objective; while nothing is certified, a multiple of the best expected one."""
        if self.safe:
            return min(map(self._objective_of, certifiable_forecasts(self.job, self.space, self.history).values()))
        certified = self.certifiable(self.space.probe_usd, self.space.probe_s)
        if self._has_plans and not self.job.goal.limited:  # a configuration that may not be probed cannot be chosen
            certified &= allowed_probes(self.job, self.space, self.history)
        value = self.value(self.finish_s)
        best = np.where(certified, value, np.inf).min(axis=1)
        best = best if np.isfinite(best).any() else value.min(axis=1)
        finite = best[np.isfinite(best)]
        times = UNSAFE_PENALTY if self.job.goal.limited else NOT_RUN_PENALTY
        return times * float(np.median(finite)) if finite.size else 0.0

    def is_hopeless(self, eligible: Mask) -> bool:
        """Whether a job without a limit has run nowhere, and probably fits no configuration that may be probed."""
        if self.job.goal.limited or self.history.good or not eligible.any():
            return False
        return bool(np.isfinite(self.finish_s[:, eligible]).mean(axis=0).max() <= HOPELESS)

    @property
    def _has_plans(self) -> bool:
        return planned_training(self.job) is not None

    def would_rule_out(self, place: int) -> Mask:
        """Which others are sure to run out of memory if this one does."""
        return ruled_out_by(self.job, self.space, self.history, place)

    def rules_out_most(self, eligible: Mask) -> int | None:
        """The configuration whose running out of memory would rule out most others."""
        places = np.flatnonzero(eligible).tolist()
        return max(places, key=lambda place: int((self.would_rule_out(place) & eligible).sum()), default=None)

    def _objective_of(self, ahead: Forecast) -> float:
        """J of a forecast."""
        return ahead.seconds if self.fast else ahead.usd

    def fallback(self, usd: Floats, seconds: Floats) -> Floats:
        """V0'(D) of all configurations, or of some measured ones: the best still certified after this much more use."""
        if not self.safe:
            return np.full(usd.shape, self.v0)
        measured = self._fallback_after(usd, seconds, self.ahead)
        if len(usd) < len(self.space):
            return measured
        return np.where(self._is_measured, measured, self._fallback_after(usd, seconds, self._ahead_of_one_more))

    def _fallback_after(self, usd: Floats, seconds: Floats, ahead: Mapping[Configuration, Forecast]) -> Floats:
        fallback = np.full(usd.shape, np.inf)
        for m in self.safe:
            worst = ahead[m.configuration]
            is_within = self.within_limits(usd + worst.worst_usd, seconds + worst.worst_seconds)
            better = np.minimum(fallback, self._objective_of(self.ahead[m.configuration]))
            fallback = np.where(is_within, better, fallback)
        for trial in self._trials:
            likely, started = trial.likely, self._still_certain(usd + trial.usd, seconds + trial.seconds)
            started = started & self.within_limits(usd + likely.worst_usd, seconds + likely.worst_seconds)
            fallback = np.where(started, np.minimum(fallback, self._objective_of(likely)), fallback)
        return fallback

    @cached_property
    def _trials(self) -> list[Trial]:
        """Measured configurations on which the job may start on trial, because another one is certain to finish."""
        return trials(self.job, self.space, self.history) if self.safe and may_start_on_trial(self.job) else []

    def _still_certain(self, usd: Floats, seconds: Floats) -> Mask:
        """Whether some measured configuration is still sure enough to be the fallback after this much more use."""
        certain: Mask = np.zeros(np.shape(usd), dtype=bool)
        for worst in self._fallbacks:
            certain = certain | self.within_limits(usd + worst.worst_usd, seconds + worst.worst_seconds)
        return certain

    @cached_property
    def _fallbacks(self) -> list[Forecast]:
        """Forecasts of finishing on each configuration that is certain, once one more is measured."""
        job = with_fallback_confidence(self.job)
        return [ahead for _, ahead in forecasts(job, self.space, self.history, self.safe, more=1)]

    def certifiable(self, usd: Floats, seconds: Floats, clusters: Counts | None = None) -> Mask:
        """Whether D, in each sample, would be certified after using `usd` and `seconds` on a probe of it.

        Either by the first part of the probe, or by the whole, or by further launches afterwards, all at once.
        `clusters`: on how many clusters each configuration is probed at once; one if not given.
        """
        longest_s = self._longest_s(usd, seconds) * np.exp(-self._margins(1.0, clusters))
        for again in FURTHER_LAUNCHES:
            usd_again, s_again = usd + again * self.space.probe_usd, seconds + self.space.probe_s
            by_more = self._longest_s(usd_again, s_again) * np.exp(-self._margins(1.0, clusters, again))
            longest_s = np.maximum(longest_s, by_more)
        if self.share < 1:
            by_look_s = self._longest_s(self.share * usd, self.share * seconds)
            longest_s = np.maximum(longest_s, by_look_s * np.exp(-self._margins(self.share, clusters)))
        if self._trials:
            on_trial_s = self._longest_s(usd, seconds) * np.exp(-self._margins(1.0, clusters, likely=True))
            longest_s = np.where(self.can_start_trial(usd, seconds), np.maximum(longest_s, on_trial_s), longest_s)
        certified: Mask = self.finish_s <= longest_s
        return certified

    def can_start_trial(self, usd: Floats, seconds: Floats) -> Mask:
        """Whether the job may start on trial on each configuration, with a certain fallback, after this much use."""
        trial = trial_duration_s(self.space.startup_limit_s)
        return self._still_certain(usd + self.space.usd(trial), seconds + trial)

    def _margins(self, share: float, clusters: Counts | None, again: int = 0, *, likely: bool = False) -> Floats:
        """The log margin of each configuration after a probe of this share and `again` more; `likely`: for a trial."""
        margins = self._margins_of_one(share, again, likely=likely)
        several = np.flatnonzero(clusters > 1).tolist() if clusters is not None else []
        if clusters is None or not several:
            return margins
        margins = margins.copy()
        for place in several:
            margins[place] = self._margin_at(place, share, again + int(clusters[place]), likely)
        return margins

    def _margins_of_one(self, share: float, again: int, *, likely: bool) -> Floats:
        """The same where each is probed on one cluster. Cached, because it is needed many times."""
        key = (share, again, likely)
        if key not in self._margin_cache:
            margin = self.likely_margin if likely else self.margin
            margins = np.full(len(self.space), margin(self.error / sqrt(share * (1 + again)), 1 + again))
            for place in self.rate_precision:
                margins[place] = self._margin_at(place, share, again + 1, likely)
            self._margin_cache[key] = margins
        return self._margin_cache[key]

    @cached_property
    def _margin_cache(self) -> dict[tuple[float, int, bool], Floats]:
        return {}

    def _margin_at(self, place: int, share: float, times: int, likely: bool) -> float:
        known, launches = self.rate_precision.get(place, (0.0, 0))
        error = max(1 / sqrt(known + times * share / self.error**2), SMALLEST_ERROR)
        return (self.likely_margin if likely else self.margin)(error, launches + times)

    @cached_property
    def rate_precision(self) -> dict[int, tuple[float, int]]:
        """By place of what ran: precision of its log rate (one over the squared error), and number of launches."""
        launches = Counter(m.configuration for m in self.history.measurements if m.ok)
        return {
            self.space.index[m.configuration]: (1 / max(m.rel_error, 1e-9) ** 2, launches[m.configuration])
            for m in self.history.good
        }

    def margin(self, error: float, launches: int) -> float:
        """How far below the measured rate a certificate stays, as a difference of logs."""
        sure = needed_confidence(self.job.goal.confidence, launches, max(1, len(self.rate_precision)))
        return self.history.spread.margin(round(error, 4), launches, sure)

    def likely_margin(self, error: float, launches: int) -> float:
        """The same for a start on trial."""
        return likely_margin(self.history.spread, round(error, 4), launches)

    def _longest_s(self, usd: Floats, seconds: Floats) -> Floats:
        """How long finishing may take after this much more use; finite, so that an infinite time never fits."""
        goal, history = self.job.goal, self.history
        by_budget = (goal.most_usd - history.spent_usd - usd - self.space.usd_per_launch) / self.space.usd_per_s
        longest: Floats = np.minimum(by_budget, goal.most_s - history.elapsed_s - seconds)
        return np.minimum(longest, np.finfo(float).max)

    def within_limits(self, more_usd: Floats | float, more_s: Floats | float) -> Mask:
        """Whether the limits hold after this much more use."""
        usd, seconds = np.asarray(self.history.spent_usd + more_usd), np.asarray(self.history.elapsed_s + more_s)
        return limits_allow(self.job.goal, usd, seconds)

    @cached_property
    def ahead(self) -> dict[Configuration, Forecast]:
        """Forecasts of finishing on every measured configuration."""
        return {m.configuration: ahead for m, ahead in forecasts(self.job, self.space, self.history)}

    @cached_property
    def _ahead_of_one_more(self) -> dict[Configuration, Forecast]:
        """The same once one more configuration is measured: a best of more candidates needs a larger margin."""
        return {m.configuration: ahead for m, ahead in forecasts(self.job, self.space, self.history, more=1)}

    @cached_property
    def _is_measured(self) -> Mask:
        measured = np.zeros(len(self.space), dtype=bool)
        measured[list(self.rate_precision)] = True
        return measured


def _error(space: Space, history: History) -> float:
    """Relative error of a whole probe: the median over the probes so far."""
    whole = [
        m.rel_error * sqrt(min(1.0, m.seconds / space.probe_time.seconds(m.configuration.nodes)))
        for m in history.measurements
        if m.ok
    ]
    return float(np.median(whole)) if whole else TYPICAL_ERROR
