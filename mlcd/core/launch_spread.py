"""How far the rate of the next launch may be below what earlier launches of a configuration showed.

    log r - log r_measured  ~  mixture over tau of  N( 0, e^2 + tau^2 (1 + 1/k) + b^2 )

Symbols   r      rate of the next launch, over hours          e      error of the measured rate, within its launches
          tau    spread of the log rate between launches      k      launches that were measured
          b      what minutes show too fast or too slow, whatever is launched

Machines, neighbours and clocks differ from launch to launch, and minutes differ from the hours after them. One launch
cannot show that, so tau is learnt where a configuration was launched more than once, in this search and in earlier runs
at the same place: of a few values of tau, each is as likely as the deviations of such launches make it (the restricted
likelihood of a random-effects model; DerSimonian and Laird, Controlled Clinical Trials 7, 1986, have the setting).
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
"""How likely each tau is before anything was launched twice: on clouds, 2 to 8 % were seen."""
SMALL_TAU = 0.02
MINUTES_SPREAD = 0.043
"""b, before a run has shown anything: boost clocks, burst credits and caches favour the first minutes."""

LogLikelihoods = tuple[float, ...]
"""Of each tau, up to a constant."""
NO_REPEATS: LogLikelihoods = (0.0,) * len(TAUS)


def by_configuration(launches: Iterable[Measurement]) -> dict[Configuration, list[Measurement]]:
    """Those that have a rate, in the order they came."""
    grouped: dict[Configuration, list[Measurement]] = defaultdict(list)
    for launch in launches:
        if launch.ok:
            grouped[launch.configuration].append(launch)
    return grouped


def repeat_log_likelihoods(launches: Iterable[Measurement]) -> LogLikelihoods:
    """What launches of the same configurations among these say of tau."""
    repeated = [same for same in by_configuration(launches).values() if len(same) > 1]
    return tuple(sum(_log_likelihood(same, tau) for same in repeated) for tau in TAUS)


def _log_likelihood(launches: Sequence[Measurement], tau: float) -> float:
    """Of the deviations from their common mean."""
    mean = math.log(mean_rate(launches, tau**2))
    variances = [launch.rel_error**2 + tau**2 for launch in launches]
    misfit = sum((math.log(m.rate) - mean) ** 2 / v for m, v in zip(launches, variances, strict=True))
    return -0.5 * (sum(map(math.log, variances)) + math.log(sum(1 / v for v in variances)) + misfit)


def mean_rate(launches: Sequence[Measurement], tau_squared: float) -> float:
    """The rate of a configuration by several launches; the surer ones count more, as far as they differ in that."""
    weights = [1 / (launch.rel_error**2 + tau_squared) for launch in launches]
    logs = [math.log(launch.rate) for launch in launches]
    return math.exp(sum(w * y for w, y in zip(weights, logs, strict=True)) / sum(weights))


@dataclass(frozen=True, slots=True)
class Spread:
    """Between launches of one configuration: how likely each of TAUS is."""

    weights: tuple[float, ...] = PRIOR

    @staticmethod
    def posterior(seen: LogLikelihoods) -> Spread:
        """The prior, updated."""
        best = max(seen)
        likely = [prior * math.exp(each - best) for prior, each in zip(PRIOR, seen, strict=True)]
        return Spread(tuple(each / sum(likely) for each in likely))

    @property
    def agreement(self) -> float:
        """How likely it is that launches differ by no more than CALM."""
        return sum(weight for weight, tau in zip(self.weights, TAUS, strict=True) if tau <= SMALL_TAU)

    @property
    def variance(self) -> float:
        """The expected tau^2."""
        return sum(weight * tau**2 for weight, tau in zip(self.weights, TAUS, strict=True))

    def margin(self, rel_error: float, launches: int, confidence: float) -> float:
        """By how much the log rate of the next launch is below the measured one at the most, with that confidence."""
        return _margin(self, rel_error, launches, confidence)

    def probability(
        self, room: float, rel_error: float, launches: int, minutes_spread: float = MINUTES_SPREAD
    ) -> float:
        """The confidence that goes with a margin: that the next launch is at most `room` slower, in the log."""
        total = 0.0
        for weight, tau in zip(self.weights, TAUS, strict=True):
            variance = rel_error**2 + tau**2 * (1 + 1 / launches) + minutes_spread**2
            total += weight * 0.5 * math.erfc(-room / math.sqrt(2 * variance))
        return total


@lru_cache(maxsize=10_000)
def _margin(spread: Spread, rel_error: float, launches: int, confidence: float) -> float:
    """By bisection: the chance rises with the room."""
    low, high = 0.0, 1.0
    while spread.probability(high, rel_error, launches) < confidence:
        high *= 2
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if spread.probability(middle, rel_error, launches) >= confidence else (middle, high)
    return high
