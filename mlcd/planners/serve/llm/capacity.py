"""The Poisson arrival rate that one replica can take within its caps, from levels measured in a closed loop.

A closed loop fixes the number of requests in flight; users do not. With Poisson arrivals the number varies, and a
deployment that just meets its caps with c in flight breaks them whenever more are. So a replica is planned for less
than the measured rate:

- With k requests in flight the engine answers mu_k requests a second, as measured. In such a processor-sharing queue
  the number in flight has p_k proportional to prod (rate / mu_j), j = 1 .. k, whatever the distribution of answer
  lengths (insensitivity: Cohen 1979). Arrivals see p_k (PASTA).
- At most c are admitted; the others wait in a queue, first come first served, at rate mu_c.
- With k in flight the share of requests above a cap is b_k = 1 if the upper bound h_k of the figure is above the cap,
  else (1 - q)^(cap / h_k): an exponential tail through the measured q-quantile.
- The wait for admission adds to the time to first token. It is Erlang-distributed: k - c + 1 answers at rate mu_c.

A replica's rate is the largest at which each cap holds for its share of requests (95 % for a p95), and at most 5 % of
the requests have to wait for admission, whatever the caps. Several replicas share arrivals at random (the worst kind of
load balancing), so each sees Poisson arrivals again, and n of them take n times as much.

Between two levels mu is interpolated and figures are those of the higher level; both are conservative, since rates are
concave and figures grow. Rates count at their lower bound. Not covered: bursts, and answer lengths that vary more than
an exponential distribution while requests wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.special import gammaincc

from mlcd.core.configuration import Floats
from mlcd.planners.serve.nouns import Cap, Figure, Level

MOST_WAITING = 0.05
"""Largest share of requests that may have to wait for admission."""
MOST_BUSY = 0.999
"""Largest utilisation that a replica is planned for."""
TAIL = 1e-9
"""Probability of the queue lengths that are neglected."""
SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
WITH_WAIT = frozenset({Figure.P50, Figure.P95, Figure.P99, Figure.TTFT_P50, Figure.TTFT_P95})
"""Figures that include the wait for admission."""


@dataclass(frozen=True)
class Replica:
    """One replica. `rate`: the Poisson arrivals a second that it can take. `closed_rate`: the requests a second that
    it answered in a closed loop at its admission limit.
    """

    rate: float
    closed_rate: float
    queue: Queue

    @property
    def admission_limit(self) -> int:
        """c: the most requests that are admitted at once."""
        return len(self.queue.answers)

    def target(self, most: int = 1) -> tuple[float, float]:
        """For autoscaling up to `most` replicas: requests a second of each, and the average in flight at that rate.

        Slightly less than `rate`, so that at the peak one of them may fail.
        """
        rate = self.rate * (most - 1) / most if most > 1 else self.rate
        probabilities = self.queue.in_flight(rate)
        return rate, float(probabilities @ np.minimum(np.arange(len(probabilities)), self.admission_limit))


def replica(levels: Sequence[Level], caps: Sequence[Cap], output_tokens: float) -> Replica | None:
    """The replica with the largest rate, over all admission limits that were measured; None if none meets the caps."""
    levels = sorted(levels, key=lambda level: level.concurrency)
    fitting = [level for level in levels if all(level.high.get(cap.figure, inf) <= cap.at_most_s for cap in caps)]
    candidates = [_with_admission_limit(levels, level, caps, output_tokens) for level in fitting]
    return max((each for each in candidates if each.rate > 0), key=lambda each: each.rate, default=None)


def _with_admission_limit(levels: Sequence[Level], top: Level, caps: Sequence[Cap], output_tokens: float) -> Replica:
    queue = Queue.of([level for level in levels if level.concurrency <= top.concurrency], caps, output_tokens)
    least, most = 0.0, float(queue.answers[-1])
    for _ in range(50):
        middle = (least + most) / 2
        least, most = (middle, most) if queue.holds(middle) else (least, middle)
    return Replica(least, top.rate / output_tokens, queue)


@dataclass(frozen=True)
class Queue:
    """The queueing model of a replica that admits at most len(answers) requests.

    `answers[k - 1]`: mu_k, requests answered a second with k in flight. `highs[i][k - 1]`: h_k, the upper bound of the
    i-th cap's figure with k in flight.
    """

    answers: Floats
    caps: Sequence[Cap]
    highs: Sequence[Floats]

    @classmethod
    def of(cls, levels: Sequence[Level], caps: Sequence[Cap], output_tokens: float) -> Queue:
        """Interpolate conservatively between and below the measured levels."""
        at = np.array([level.concurrency for level in levels])
        every = np.arange(1, at[-1] + 1)
        rates = np.array([level.slow_rate for level in levels]) / output_tokens
        answers = np.interp(every, [0, *at], [0.0, *rates])
        above = np.searchsorted(at, every)
        growing = [
            np.maximum.accumulate([level.high.get(cap.figure, inf) for level in levels], dtype=float) for cap in caps
        ]
        return cls(answers, caps, [high[above] for high in growing])

    def holds(self, rate: float) -> bool:
        """Whether all caps are met at this arrival rate, and few enough requests wait."""
        if rate <= 0:
            return True
        if rate > MOST_BUSY * self.answers[-1]:  # the queue would grow without end
            return False
        probabilities = self.in_flight(rate)
        if probabilities[len(self.answers) :].sum() > MOST_WAITING:
            return False
        shares = [self._share_above(i, rate, probabilities) for i in range(len(self.caps))]
        return all(share <= 1 - share_within(cap.figure) for share, cap in zip(shares, self.caps, strict=True))

    def longest(self, rate: float) -> int:
        """The largest number of requests, in flight and waiting, that is modelled."""
        return len(self.answers) + int(np.ceil(np.log(TAIL) / np.log(rate / self.answers[-1]))) if rate > 0 else 0

    def in_flight(self, rate: float) -> Floats:
        """The probabilities of 0, 1, 2 ... requests, in flight or waiting."""
        waiting = np.full(self.longest(rate) - len(self.answers), self.answers[-1]) if rate > 0 else np.array([])
        steps = np.log(rate) - np.log([*self.answers, *waiting]) if rate > 0 else np.array([])
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def _share_above(self, i: int, rate: float, probabilities: Floats) -> float:
        """The share of requests above the i-th cap, as seen by arrivals or by requests in service: the larger one."""
        cap, limit = self.caps[i], len(self.answers)
        by_count = _above(self.highs[i], cap)
        arriving = float(probabilities[:limit] @ by_count)
        waiting = probabilities[limit:]
        if cap.figure in WITH_WAIT:
            spare_s = cap.at_most_s - self.highs[i][-1]
            late = gammaincc(np.arange(1, len(waiting) + 1), self.answers[-1] * spare_s)
            arriving += float(waiting @ (late + (1 - late) * by_count[-1]))
        else:
            arriving += float(waiting.sum() * by_count[-1])
        count = np.minimum(np.arange(len(probabilities)), limit)
        each = np.concatenate([[0.0], by_count, np.full(len(waiting) - 1, by_count[-1])])
        in_service = float((probabilities * count) @ each / (probabilities @ count))
        return max(arriving, in_service)


def _above(highs: Floats, cap: Cap) -> Floats:
    """b_k: the share of requests above the cap, by the number in flight."""
    tail = (1 - share_within(cap.figure)) ** (cap.at_most_s / highs)
    return np.where(highs > cap.at_most_s, 1.0, tail)


def share_within(figure: Figure) -> float:
    """The share of requests that a cap on this figure covers: 0.95 for a p95."""
    return SHARES[figure.rpartition("_")[2]]
