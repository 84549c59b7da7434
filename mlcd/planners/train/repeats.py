"""When launching a measured configuration again is worth more than probing a new one.

How much launches of one configuration differ is one number for all configurations (`launch_spread.py`). Until it is
known, every certificate assumes the worst that clouds show, and the reserve for the first certified configuration may
leave nothing for other probes. A few more launches of something cheap, on several clusters at once, shrink the margin
of every configuration.

Symbols as in `net_value.py`, and

    T(state)         the expected final objective: V0, or the best that one more probe is expected to reach
    Net(repeat D)  = P(launches differ little) x ( T(now) - T(after D was launched again and agreed) ) - q - toll
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import Self

import numpy as np

from mlcd.core.configuration import Floats, Mask
from mlcd.core.guarantee import certifiable, refusal, share_of_limits, within_price_limits
from mlcd.core.measurement import Measurement
from mlcd.planners.train.search_state import MOST_LAUNCHES, SearchState

WORTH_OF_A_CERTIFICATE = 0.2
"""Share of the limits that a sure certificate is worth, while there is none."""
WORTH_IT = 0.005
"""Share of V0 that a probe must save beyond its price: a margin against the winner's curse."""
SLOWER_START = 1.25
"""How many times longer than the earlier start-up another launch may need to start."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Launch a measured configuration again, on `times` clusters at once, for `share` of a probe's time."""

    place: int
    times: int
    share: float
    net: float


@dataclass(frozen=True)
class Repeats(SearchState):
    """Adds the value of launching something again."""

    def worth_repeating(self, candidates: Mask, most: int) -> Repeat | None:
        """What to launch again, on up to `most` clusters. `candidates`: what may be probed afterwards."""
        if not self.job.goal.limited or not self.rate_precision:
            return None
        candidates = candidates & within_price_limits(self.job.search, self.space)
        v0 = self.v0
        now, best = self._final_objective(candidates, v0), None
        for m in self._cheap_to_repeat():
            place, share = self.space.index[m.configuration], self._long_enough(m)
            times = self._times_allowed(m, min(most, MOST_LAUNCHES - self.rate_precision[place][1]), share)
            if times < 1:
                continue
            seconds, usd = map(np.array, self.space.worst_probe(m.configuration, share))
            after = self._if_launches_agree(m, times)._final_objective(candidates, v0)
            gain = self.history.spread.agreement * (now - after)
            net = gain - float(self.price(times * usd, seconds) + self.toll(times * usd, seconds))
            if net > self.least_worth(v0) and (best is None or net > best.net):
                best = Repeat(place, times, share, net)
        return best

    def _long_enough(self, m: Measurement) -> float:
        """The share of a whole probe that measures as long as a look does, after a start-up as long as the last."""
        whole_s, _ = self.space.worst_probe(m.configuration)
        return min(1.0, self.share + SLOWER_START * m.startup_s / whole_s)

    def _times_allowed(self, m: Measurement, most: int, share: float) -> int:
        """On how many clusters at once the limits allow this share of a probe."""
        while most > 0 and refusal(self.job, self.space, self.history, [m.configuration] * most, share) is not None:
            most -= 1
        return most

    def is_worth_finishing(self, seen: Measurement, share: float, candidates: Mask) -> bool:
        """Whether to finish the probe whose look is the first to certify anything.

        A wide interval would need a large reserve, which may leave nothing for other probes.
        """
        whole_s, whole_usd = self.space.worst_probe(seen.configuration)
        stopped = self._after([replace(seen, seconds=share * whole_s, usd=share * whole_usd)])
        whole = replace(seen, rel_error=seen.rel_error * sqrt(share), seconds=whole_s, usd=whole_usd)
        finished = self._after([whole])
        if not finished.safe:
            return False
        candidates = candidates & within_price_limits(self.job.search, self.space)
        price = (1 - share) * float(self.price(whole_usd, whole_s))
        return finished._final_objective(candidates, np.inf) + price < stopped._final_objective(candidates, np.inf)

    def toll(self, usd: Floats, seconds: Floats) -> Floats:
        """While nothing is certified: the used share of the limits, in the unit of the objective.

        A search that ends without a certificate has wasted that share. The toll also makes cheap sizes come first.
        There is none until something has run, because until then the job's needs are unknown.
        """
        if not self.history.good or self.safe:
            return np.zeros(np.shape(usd))
        toll: Floats = share_of_limits(self.job.goal, usd, seconds) * (self.v0 / WORTH_OF_A_CERTIFICATE)
        return toll

    def least_worth(self, v0: float) -> float:
        """What a probe must save. Without a limit, giving up before anything has run saves nothing."""
        return WORTH_IT * v0 if self.safe or self.job.goal.limited else -np.inf

    def _cheap_to_repeat(self) -> Iterator[Measurement]:
        """What ran at the lowest probe price, and the certified configuration with the smallest reserve; never a
        configuration that has also failed."""
        failed = {m.configuration for m in self.history.measurements if not m.ok}
        ran = [m for m in self.history.good if m.configuration not in failed]
        if not ran:
            return
        cheapest = min(ran, key=lambda m: float(self.space.probe_usd[self.space.index[m.configuration]]))
        yield cheapest
        by_budget = self.job.goal.budget_usd is not None

        def reserved(m: Measurement) -> float:
            ahead = self.ahead[m.configuration]
            return ahead.worst_usd if by_budget else ahead.worst_seconds

        least = min((m for m in self.safe if m.configuration not in failed), key=reserved, default=cheapest)
        if least.configuration != cheapest.configuration:
            yield least

    def _if_launches_agree(self, m: Measurement, times: int) -> Self:
        """The state after so many more launches of this, if they differ by no more than their measurement errors."""
        error = self.error / sqrt(self.share)
        seconds, usd = self.space.worst_probe(m.configuration, self._long_enough(m))
        look = replace(m, rel_error=error, seconds=seconds, usd=usd)
        return self._after([replace(look, samples_per_s=m.rate * exp(error * (-1) ** i)) for i in range(times)])

    def _after(self, launches: Sequence[Measurement]) -> Self:
        """The state after these launches, made at once."""
        history = replace(
            self.history,
            measurements=(*self.history.measurements, *launches),
            spent_usd=self.history.spent_usd + sum(m.usd for m in launches),
            elapsed_s=self.history.elapsed_s + max(m.seconds for m in launches),
        )
        return replace(self, history=history, safe=tuple(certifiable(self.job, self.space, history)))

    def _final_objective(self, candidates: Mask, otherwise: float) -> float:
        """T: the expected objective with one more probe or none; `otherwise` if nothing is certified then."""
        usd, seconds = self.space.probe_usd, self.space.probe_s
        value = np.where(self.certifiable(usd, seconds), self.value(self.finish_s), np.inf)
        fallback = self.fallback(usd, seconds) if self.safe else np.full(usd.shape, otherwise)
        ends = np.minimum(value, fallback).mean(axis=0)
        ends = ends + self.share * (self.price(usd, seconds) + self.toll(usd, seconds))
        return min(self.v0 if self.safe else otherwise, float(np.where(candidates, ends, np.inf).min()))
