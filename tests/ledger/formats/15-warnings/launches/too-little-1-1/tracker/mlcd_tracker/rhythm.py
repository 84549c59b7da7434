"""How often the gradient noise may be measured without being felt.

A measurement is felt in the steps that it takes, and in a few after them: halves of a batch leave caches and allocator
in a state that the next whole batches pay for. All of these are timed against the plain steps before: a machine may be
slower now than it was a minute ago. A measurement that costs c plain steps is taken every c/AIM steps, so that all of
them together take no more than AIM of the time. The first ones are taken whatever they cost, with plain steps between
them: a first reading is needed soon, and so is the cost.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median

AIM = 0.01
"""Of the time, for measuring. What is promised is 2 %: a cost is known only so well."""
AGREE_S = 0.25
"""Between two moments, at most, at which the workers agree on leaving; a longer step is one by itself."""
WARM_UP = 5
FIRST = 40
"""Steps that are not timed; measurements that come before any are saved on."""
AFTER = 3
"""Steps after a measurement in which it is still felt."""
NEIGHBOURS, KEPT = 7, 101
"""Plain steps that a measurement is compared with; comparisons that are kept."""
RAREST = 500
CHECK_EVERY = 30
"""Measurements that follow each other too closely to be timed, at most: the cost may have changed."""


class Rhythm:
    """When to measure next.

    `spread`: the steps that a measurement takes. `fixed`: the steps from one to the next, whatever it costs.
    """

    def __init__(self, spread: int = 1, fixed: int | None = None) -> None:
        self.spread, self._fixed = spread, fixed
        self._timed = self._measurements = 0
        self._plain_s: deque[float] = deque(maxlen=NEIGHBOURS)
        self._felt_s: list[float] | None = None
        """Of the measurement that is being timed."""
        self._costs: deque[float] = deque(maxlen=KEPT)
        """Of measurements, in plain steps."""
        self._close = 0

    def took(self, seconds: float, *, measured: bool) -> None:
        """A step has taken so long; whether a measurement is under way in it."""
        self._timed += 1
        self._measurements += measured
        if self._timed <= WARM_UP:
            return
        if measured and (self._felt_s is None or len(self._felt_s) >= self.spread):  # another one, too soon to be timed
            self._felt_s = [] if self._felt_s is None and self._plain_s else None
        if self._felt_s is None:
            if not measured:
                self._plain_s.append(seconds)
            return
        self._felt_s.append(seconds)
        if len(self._felt_s) >= self.spread + AFTER:
            self._costs.append(sum(self._felt_s) / self._step_s() - len(self._felt_s))
            self._felt_s = None

    def next(self, since: int) -> tuple[int, bool]:
        """In how many steps the workers talk to each other again, and whether they measure then.

        `since`: the steps since the last measurement.
        """
        wait = max(1, self._every() - since)
        soon = max(1, int(AGREE_S / self._step_s()))
        return (wait, True) if wait <= soon else (soon, False)

    def cost(self) -> float | None:
        """Of a measurement, in plain steps, with two standard errors added; None while it is not known."""
        if not self._costs:
            return None
        middle = median(self._costs)
        distance = median(abs(each - middle) for each in self._costs)
        error = 1.253 * 1.483 * distance / math.sqrt(len(self._costs))  # of the median, as of a normal distribution
        return max(0.0, middle + 2 * error)

    def _every(self) -> int:
        """The steps from one measurement to the next."""
        if self._fixed is not None:
            return self._fixed
        cost, timed = self.cost(), self.spread + AFTER + 2  # far enough apart to be timed, with plain steps between
        if cost is None or self._measurements < FIRST * self.spread:
            return timed
        every = min(RAREST, math.ceil(cost / AIM))
        if every >= timed:
            return every
        self._close = (self._close + 1) % CHECK_EVERY
        return max(self.spread, every) if self._close else timed

    def _step_s(self) -> float:
        """Of a plain step."""
        return max(1e-9, median(self._plain_s or (AGREE_S,)))
