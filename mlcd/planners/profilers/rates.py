"""The rate of a running job from its reports: evenly spaced, without the warm-up, with its error.

Symbols   r_i    samples a second in the i-th interval between two reports
          N      intervals kept after the warm-up
          t_N    Student's quantile with N - 1 degrees, at the confidence of Z normal standard errors
          rho    correlation of each r_i with the next; N (1 - rho) / (1 + rho) independent ones would tell as much
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Floats
from mlcd.core.measurement import Sample, Z
from mlcd.core.strategy import Look

FEWEST = 8
"""Intervals below which no rate is trusted: Student's quantile is still below 1.6 times the normal one."""

MOST_INTERVALS = 64
"""That a rate and its scatter are taken from."""

CONTRADICTS = 0.95
"""With what confidence the scatter of a probe has to be above the stated noise to count instead of it."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What no measurement is surer than.

    `noise_floor`: relative error that is assumed at the least. `settles_s`: what comes and goes more slowly than
    reports do takes about so long to average out. `stated_noise`: the relative error that a whole probe is known to
    have, if it is; a shorter one has more, by the inverse root of its share.
    """

    noise_floor: float
    stated_noise: float
    settles_s: float

    def rel_error(self, launch: Launch, steady: list[Sample], seconds: float) -> float:
        """One effective standard error of the log rate: Z of these are Student's interval, or Z floors."""
        rates = rates_between(steady)
        n = len(rates)
        scatter = float(rates.std(ddof=1) / rates.mean()) if n > 1 and rates.mean() > 0 else math.inf
        stated = self._stated(launch, seconds)
        measured_s = steady[-1].elapsed_s - steady[0].elapsed_s
        floor = self.noise_floor * math.sqrt(1 + self.settles_s / measured_s) if measured_s > 0 else math.inf
        seen = scatter * math.sqrt(_correlation_factor(rates) / n)
        if seen <= stated * _by_chance(n - 1):
            return max(floor, stated)
        return max(floor, stated, seen * _student(n - 1) / Z)

    def _stated(self, launch: Launch, seconds: float) -> float:
        """The stated noise after so long. It is of probes: minutes of a run have more, and hours far less."""
        if launch.purpose is Purpose.RUN:
            return 0.0
        whole_s = launch.whole_s or launch.lifetime_s
        share = min(1.0, seconds / whole_s) if whole_s else 1.0
        return self.stated_noise / math.sqrt(share)


def _correlation_factor(rates: Floats) -> float:
    """(1 + rho) / (1 - rho), or 1 where chance alone may make neighbours alike."""
    n, off = len(rates), rates - rates.mean()
    squares = float(off @ off)
    rho = float(off[1:] @ off[:-1]) / squares if n > 2 and squares > 0 else 0.0
    return (1 + rho) / (1 - rho) if rho > 2 / math.sqrt(n) else 1.0


def rates_between(seen: list[Sample]) -> Floats:
    """Between each report and the next."""
    at_s = np.array([sample.elapsed_s for sample in seen])
    samples = np.array([sample.samples for sample in seen])
    rates: Floats = np.diff(samples) / np.diff(at_s)
    return rates


def overall_rate(seen: list[Sample]) -> float:
    """From the first report to the last. The mean of the rates between would count a short interval like a long one."""
    return (seen[-1].samples - seen[0].samples) / (seen[-1].elapsed_s - seen[0].elapsed_s)


def evenly_spaced(seen: list[Sample]) -> list[Sample]:
    """Reports about equally far apart. A checkpoint brings extra ones: next to no time, and no progress in it."""
    apart_s = (seen[-1].elapsed_s - seen[0].elapsed_s) / MOST_INTERVALS
    kept = [seen[0]]
    for sample in seen[1:]:
        if sample.elapsed_s - kept[-1].elapsed_s >= apart_s:
            kept.append(sample)
    return kept


def warm_up_length(rates: Floats) -> int:
    """How many first intervals to drop: the cut, in the first half, that leaves the smallest standard error.

    The marginal standard error rule (White, Simulation 69, 1997).
    """
    n = len(rates)
    if n < 4:
        return 0
    cuts = range(n // 2 + 1)
    errors = [float(rates[cut:].var()) / (n - cut) for cut in cuts]
    return int(np.argmin(errors))


def decline(rates: Floats) -> float:
    """By how much the second half is slower than the first, as a share of the mean; 0 where chance may have done it.

    A warm-up comes to its end. A rate that still falls has no steady part, and where it will come to is not known.
    """
    first, second = np.array_split(rates, 2)
    if len(second) < 2 or rates.mean() <= 0:
        return 0.0
    fell = float(first.mean() - second.mean())
    by_chance = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return fell / float(rates.mean()) if fell > Z * by_chance else 0.0


def is_due(look: Look, launch: Launch, event: Sample) -> bool:
    """Whether so much of a probe is over that a look is to be taken."""
    return launch.lifetime_s is not None and event.elapsed_s >= look.share * launch.lifetime_s - 1e-6


@lru_cache
def _by_chance(degrees: int) -> float:
    """How far above the true standard error a measured one may be before it speaks against it."""
    return math.sqrt(chdtri(degrees, 1 - CONTRADICTS) / degrees) if degrees > 0 else 0.0


@lru_cache
def _student(degrees: int) -> float:
    return -float(stdtrit(degrees, ndtr(-Z))) if degrees > 0 else math.inf
