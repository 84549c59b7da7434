"""How many requests a second one replica takes when they arrive at random, from levels measured in a closed loop.

A closed loop holds the number of requests in flight; users do not. With Poisson arrivals the number varies, and a
deployment that keeps its caps at exactly c in flight breaks them whenever more than c are. So a replica is planned for
less than the rate that was measured:

- The engine shares itself among the requests in flight: with k of them it answers mu_k requests a second, as
  measured. In such a queue the number in flight has p_k proportional to prod (rate / mu_j), j = 1 .. k, however long
  the answers are (processor sharing is insensitive to them: Cohen 1979). Arrivals see p_k (PASTA).
- At most c are let in at once; the others wait in line, in order of arrival, and are served at mu_c.
- With k in flight a figure is above its cap with a share b_k: everything where the upper end h_k of the figure is
  above the cap, else (1 - q)^(cap / h_k): an exponential tail through the measured q-quantile.
- A request that waits has its wait in its time to first token: Erlang, k - c + 1 answers at mu_c each.

The rate of a replica is the largest at which each cap holds for its share of requests (95 % of a p95), and at most one
request in twenty finds all c places taken, whatever the caps. Several replicas share arrivals at random (the worst way
of balancing them), so each sees Poisson arrivals again, and n of them take n times as much.

Between two levels mu is interpolated, and figures are those of the higher level: both on the safe side, since rates are
concave and figures grow. Rates count at their slow end. Not covered: arrivals in bursts, and lengths that vary more
than an exponential's while requests wait.
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
"""Of the requests, that may find every place taken."""
MOST_BUSY = 0.999
"""Of its rate with every place taken, that a replica is ever planned for."""
TAIL = 1e-9
"""Probability of longer lines than are looked at."""
SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
WITH_WAIT = frozenset({Figure.P50, Figure.P95, Figure.P99, Figure.TTFT_P50, Figure.TTFT_P95})
"""Figures that a wait for admission is part of."""


@dataclass(frozen=True)
class Replica:
    """What one replica takes: `rate` requests a second of Poisson arrivals. `closed_rate`: what it answered in a
    closed loop with as many in flight as it has places.
    """

    rate: float
    closed_rate: float
    line: Queue

    @property
    def places(self) -> int:
        """Requests that are let in at once."""
        return len(self.line.answers)

    def target(self, most: int = 1) -> tuple[float, float]:
        """For a tool that scales to `most` replicas: requests a second of each, and as many in flight on average.

        A little less than it takes: at the busiest all of them run, and one may be lost.
        """
        rate = self.rate * (most - 1) / most if most > 1 else self.rate
        seen = self.line.in_flight(rate)
        return rate, float(seen @ np.minimum(np.arange(len(seen)), self.places))


def replica(levels: Sequence[Level], caps: Sequence[Cap], output_tokens: float) -> Replica | None:
    """The best that a deployment with these levels takes, over all numbers of places; None if none keeps the caps."""
    levels = sorted(levels, key=lambda level: level.concurrency)
    fitting = [level for level in levels if all(level.high.get(cap.figure, inf) <= cap.at_most_s for cap in caps)]
    made = [_with_places(levels, level, caps, output_tokens) for level in fitting]
    return max((each for each in made if each.rate > 0), key=lambda each: each.rate, default=None)


def _with_places(levels: Sequence[Level], top: Level, caps: Sequence[Cap], output_tokens: float) -> Replica:
    line = Queue.of([level for level in levels if level.concurrency <= top.concurrency], caps, output_tokens)
    least, most = 0.0, float(line.answers[-1])
    for _ in range(50):
        middle = (least + most) / 2
        least, most = (middle, most) if line.holds(middle) else (least, middle)
    return Replica(least, top.rate / output_tokens, line)


@dataclass(frozen=True)
class Queue:
    """A replica with as many places as `answers` has: `answers[k - 1]`: requests a second with k in flight.

    `highs[i][k - 1]`: the upper end of the figure of the i-th cap with k in flight.
    """

    answers: Floats
    caps: Sequence[Cap]
    highs: Sequence[Floats]

    @classmethod
    def of(cls, levels: Sequence[Level], caps: Sequence[Cap], output_tokens: float) -> Queue:
        """Between and below the levels that were measured, on the safe side."""
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
        """Whether all caps are kept at this rate of arrivals, and few enough wait."""
        if rate <= 0:
            return True
        if rate > MOST_BUSY * self.answers[-1]:  # the line would grow without end
            return False
        seen = self.in_flight(rate)
        if seen[len(self.answers) :].sum() > MOST_WAITING:
            return False
        return all(self._broken(i, rate, seen) <= 1 - share_within(cap.figure) for i, cap in enumerate(self.caps))

    def longest(self, rate: float) -> int:
        """The most requests in flight or in line that are looked at."""
        return len(self.answers) + int(np.ceil(np.log(TAIL) / np.log(rate / self.answers[-1]))) if rate > 0 else 0

    def in_flight(self, rate: float) -> Floats:
        """The probability that 0, 1, 2 ... requests are there, those that wait among them."""
        line = np.full(self.longest(rate) - len(self.answers), self.answers[-1]) if rate > 0 else np.array([])
        steps = np.log(rate) - np.log([*self.answers, *line]) if rate > 0 else np.array([])
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def _broken(self, i: int, rate: float, seen: Floats) -> float:
        """The share of requests above the i-th cap: as arrivals see the engine, or as answers do, what is worse."""
        cap, places = self.caps[i], len(self.answers)
        alone = _above(self.highs[i], cap)
        arriving = float(seen[:places] @ alone)
        waiting = seen[places:]
        if cap.figure in WITH_WAIT:
            spare_s = cap.at_most_s - self.highs[i][-1]
            late = gammaincc(np.arange(1, len(waiting) + 1), self.answers[-1] * spare_s)
            arriving += float(waiting @ (late + (1 - late) * alone[-1]))
        else:
            arriving += float(waiting.sum() * alone[-1])
        count = np.minimum(np.arange(len(seen)), places)
        each = np.concatenate([[0.0], alone, np.full(len(waiting) - 1, alone[-1])])
        answering = float((seen * count) @ each / (seen @ count))
        return max(arriving, answering)


def _above(highs: Floats, cap: Cap) -> Floats:
    """The share of requests above the cap, by the number in flight."""
    tail = (1 - share_within(cap.figure)) ** (cap.at_most_s / highs)
    return np.where(highs > cap.at_most_s, 1.0, tail)


def share_within(figure: Figure) -> float:
    """Of the requests that keep a cap on this figure: 0.95 of a p95."""
    return SHARES[figure.rpartition("_")[2]]
