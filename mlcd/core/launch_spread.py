"""How much slower the next launch of a configuration may be than the measured ones: a random-effects model.

    log r - log r_measured  ~  mixture over tau of  N( 0, e^2 + tau^2 (1 + 1/k) + b^2 )

Symbols   r      rate of the next launch, over hours          e      error of the measured rate, within its launches
          tau    spread of the log rate between launches      k      launches that were measured
          b      difference between the first minutes and the hours after them

Machines, neighbours and clock rates differ between launches, which one launch cannot show. So tau is learned from
configurations that were launched more than once, in this search and in earlier runs at the same place. It has a few
possible values, with a prior and the restricted likelihood of a random-effects model (setting: DerSimonian and Laird,
Controlled Clinical Trials 7, 1986).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlcd.core.configuration import Configuration
from mlcd.core.measurement import Measurement

TAUS = (0.01, 0.02, 0.04, 0.08)
PRIOR = (0.35, 0.37, 0.16, 0.12)
"""Prior probability of each tau; on clouds, 2 to 8 % were observed."""
SMALL_TAU = 0.02
"""Launches agree if tau is at most this."""
MINUTES_SPREAD = 0.043
"""b: boost clocks, burst credits and caches favour the first minutes."""

LogLikelihoods = tuple[float, ...]
"""One for each tau, up to a constant."""
NO_REPEATS: LogLikelihoods = (0.0,) * len(TAUS)
"""Nothing was launched twice, so every tau is equally likely by the data."""


def by_configuration(launches: Iterable[Measurement]) -> dict[Configuration, list[Measurement]]:
    """The launches with a rate, by configuration, in order."""
    grouped: dict[Configuration, list[Measurement]] = defaultdict(list)
    for launch in launches:
        if launch.ok:
            grouped[launch.configuration].append(launch)
    return grouped


def repeat_log_likelihoods(launches: Iterable[Measurement]) -> LogLikelihoods:
    """The log likelihood of each tau, from configurations that were launched more than once."""
    repeated = [same for same in by_configuration(launches).values() if len(same) > 1]
    return tuple(sum(_log_likelihood(same, tau) for same in repeated) for tau in TAUS)


def _log_likelihood(launches: Sequence[Measurement], tau: float) -> float:
    """Restricted log likelihood of the deviations of these launches from their mean."""
    mean = math.log(mean_rate(launches, tau**2))
    variances = [launch.rel_error**2 + tau**2 for launch in launches]
    misfit = sum((math.log(m.rate) - mean) ** 2 / v for m, v in zip(launches, variances, strict=True))
    return -0.5 * (sum(map(math.log, variances)) + math.log(sum(1 / v for v in variances)) + misfit)


def mean_rate(launches: Sequence[Measurement], tau_squared: float) -> float:
    """The mean rate of several launches of a configuration, weighted by inverse variance of the log rate."""
    weights = [1 / (launch.rel_error**2 + tau_squared) for launch in launches]
    logs = [math.log(launch.rate) for launch in launches]
    return math.exp(sum(w * y for w, y in zip(weights, logs, strict=True)) / sum(weights))


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of tau: the probability of each of TAUS."""

    weights: tuple[float, ...] = PRIOR

    @staticmethod
    def posterior(log_likelihoods: LogLikelihoods) -> Spread:
        """The prior, updated with these."""
        best = max(log_likelihoods)
        weights = [prior * math.exp(each - best) for prior, each in zip(PRIOR, log_likelihoods, strict=True)]
        return Spread(tuple(each / sum(weights) for each in weights))

    @property
    def agreement(self) -> float:
        """The probability that tau is at most SMALL_TAU."""
        return sum(weight for weight, tau in zip(self.weights, TAUS, strict=True) if tau <= SMALL_TAU)

    @property
    def variance(self) -> float:
        """The expected tau^2."""
        return sum(weight * tau**2 for weight, tau in zip(self.weights, TAUS, strict=True))

    def margin(self, rel_error: float, launches: int, confidence: float) -> float:
        """With this confidence, the log rate of the next launch is at most this much below the measured one."""
        return _margin(self, rel_error, launches, confidence)

    def probability(
        self, room: float, rel_error: float, launches: int, minutes_spread: float = MINUTES_SPREAD
    ) -> float:
        """The probability that the log rate of the next launch is at most `room` below the measured one."""
        total = 0.0
        for weight, tau in zip(self.weights, TAUS, strict=True):
            variance = rel_error**2 + tau**2 * (1 + 1 / launches) + minutes_spread**2
            total += weight * 0.5 * math.erfc(-room / math.sqrt(2 * variance))
        return total


@lru_cache(maxsize=10_000)
def _margin(spread: Spread, rel_error: float, launches: int, confidence: float) -> float:
    """By bisection: the probability rises with the room."""
    low, high = 0.0, 1.0
    while spread.probability(high, rel_error, launches) < confidence:
        high *= 2
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if spread.probability(middle, rel_error, launches) >= confidence else (middle, high)
    return high
