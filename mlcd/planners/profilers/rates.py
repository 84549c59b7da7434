"""The rate of a job from its progress reports, without the warm-up, with its standard error; and its last metric.

Symbols   r_i    samples a second in the i-th interval between two reports
          N      intervals after the warm-up
          t_N    Student's quantile with N - 1 degrees, at the confidence of Z normal standard errors
          rho    lag-1 autocorrelation of r_i; the effective sample size is N (1 - rho) / (1 + rho)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Floats
from mlcd.core.job import Job
from mlcd.core.measurement import Sample, Z
from mlcd.core.strategy import Look

FEWEST = 8
"""Fewest intervals for a rate: with these, Student's quantile is still below 1.6 times the normal one."""

MOST_INTERVALS = 64
"""Most intervals for a rate and its scatter."""

CONTRADICTS = 0.95
"""Confidence at which a probe's measured scatter has to exceed the stated noise to replace it."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The lower bound of a measurement's error.

    `noise_floor`: smallest relative error. `settles_s`: the time that slow fluctuations take to average out.
    `stated_noise`: the known relative error of a whole probe, if any; a shorter one has more, by the inverse root of
    its share.
    """

    noise_floor: float
    stated_noise: float
    settles_s: float

    def rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        """An effective standard error of the log rate: Z of them make Student's interval, or Z floors."""
        rates = rates_between(steady)
        n, mean = len(rates), float(rates.mean())
        off = rates - mean
        squares = float(off @ off)
        scatter = math.sqrt(squares / (n - 1)) / mean if n > 1 and mean > 0 else math.inf
        stated = self._stated(launch, seconds)
        measured_s = steady[-1].elapsed_s - steady[0].elapsed_s
        floor = self.noise_floor * math.sqrt(1 + self.settles_s / measured_s) if measured_s > 0 else math.inf
        measured = scatter * math.sqrt(_correlation_factor(off, squares) / n)
        if measured <= stated * _by_chance(n - 1):
            return max(floor, stated)
        return max(floor, stated, measured * _student(n - 1) / Z)

    def _stated(self, launch: Launch, seconds: float) -> float:
        """The stated noise after this time. Only for probes: it does not apply to runs of hours."""
        if launch.purpose is Purpose.RUN:
            return 0.0
        whole_s = launch.whole_s or launch.lifetime_s
        share = min(1.0, seconds / whole_s) if whole_s else 1.0
        return self.stated_noise / math.sqrt(share)


def _correlation_factor(off: Floats, squares: float) -> float:
    """(1 + rho) / (1 - rho), or 1 if rho is not significant. `off`: from the mean; `squares`: their sum."""
    n = len(off)
    rho = float(off[1:] @ off[:-1]) / squares if n > 2 and squares > 0 else 0.0
    return (1 + rho) / (1 - rho) if rho > 2 / math.sqrt(n) else 1.0


def rates_between(reports: list[Sample]) -> Floats:
    """The rates between consecutive reports."""
    at_s = np.array([sample.elapsed_s for sample in reports])
    samples = np.array([sample.samples for sample in reports])
    rates: Floats = (samples[1:] - samples[:-1]) / (at_s[1:] - at_s[:-1])
    return rates


def overall_rate(reports: list[Sample]) -> float:
    """The rate from the first report to the last. A mean of the interval rates would overweight short intervals."""
    return (reports[-1].samples - reports[0].samples) / (reports[-1].elapsed_s - reports[0].elapsed_s)


def evenly_spaced(reports: list[Sample]) -> list[Sample]:
    """Evenly spaced reports. A checkpoint adds extra ones, with almost no time and no progress in between."""
    spacing_s = (reports[-1].elapsed_s - reports[0].elapsed_s) / MOST_INTERVALS
    kept = [reports[0]]
    for sample in reports[1:]:
        if sample.elapsed_s - kept[-1].elapsed_s >= spacing_s:
            kept.append(sample)
    return kept


def warm_up_length(rates: Floats) -> int:
    """How many intervals to drop at the start: the cut in the first half with the smallest standard error.

    The marginal standard error rule (White, Simulation 69, 1997).
    """
    n = len(rates)
    if n < 4:
        return 0
    off = rates - rates.mean()
    left = np.arange(n, n - n // 2 - 1, -1)  # intervals that each cut leaves
    sums, squares = (np.cumsum(each[::-1])[left - 1] for each in (off, off**2))
    variances = squares / left - (sums / left) ** 2
    return int(np.argmin(variances / left))


def decline(rates: Floats) -> float:
    """How much slower the second half is than the first, as a share of the mean; 0 if not significant.

    A rate that still falls has no steady part, and its final value is unknown.
    """
    first, second = np.array_split(rates, 2)
    if len(second) < 2 or rates.mean() <= 0:
        return 0.0
    fell = float(first.mean() - second.mean())
    by_chance = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return fell / float(rates.mean()) if fell > Z * by_chance else 0.0


def is_due(look: Look, launch: Launch, event: Sample) -> bool:
    """Whether enough of a probe is over for the look."""
    return launch.lifetime_s is not None and event.elapsed_s >= look.share * launch.lifetime_s - 1e-6


@lru_cache
def _by_chance(degrees: int) -> float:
    """How far a measured standard error may exceed the true one by chance, as a factor."""
    return math.sqrt(chdtri(degrees, 1 - CONTRADICTS) / degrees) if degrees > 0 else 0.0


@lru_cache
def _student(degrees: int) -> float:
    return -float(stdtrit(degrees, ndtr(-Z))) if degrees > 0 else math.inf


def saved_reports(job: Job, reports: list[Sample]) -> list[Sample]:
    """The reports of a preempted launch whose work is in a checkpoint; a reached target may be lost with the rest."""
    saved = max((sample.saved for sample in reports), default=0.0)
    return [sample for sample in reports if sample.samples <= saved] if job.checkpoints else reports


def last_metric(job: Job, reports: list[Sample]) -> float | None:
    """The value that reached the target, or the last one."""
    metrics = [sample.metric for sample in reports if sample.metric is not None and not math.isnan(sample.metric)]
    if job.target is not None:
        metrics += [metric for metric in metrics if job.target.reached(metric)][:1]
    return metrics[-1] if metrics else None


def metric_evaluations(reports: list[Sample]) -> int:
    """How often the metric was evaluated: every report repeats the last value, so count the changes."""
    return sum(1 for metric, _ in itertools.groupby(sample.metric for sample in reports) if metric is not None)
