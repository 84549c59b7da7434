"""How often the gradient noise may be measured without being felt.

A step that measures is timed against the plain steps just before it: a machine may be slower now than it was a minute
ago. A measurement that costs a share c of a step is taken every c/AIM steps, so that all of them together take no more
than AIM of the time. At the start they take turns with plain steps: a first reading is needed soon, and so is the cost.
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
FIRST = 64
"""Steps that are not timed; measurements that come before any are saved on."""
NEIGHBOURS, KEPT = 5, 101
"""Plain steps that a measuring one is compared with; comparisons that are kept."""
RAREST = 500
CHECK_EVERY = 10
"""Measurements that follow each other without a plain step between them, at most: the cost may have changed."""


class Rhythm:
    """When to measure next.

    `spread`: the steps over which a measurement's cost is spread, itself included.
    `fixed`: the steps from one measurement to the next, whatever it costs.
    """

    def __init__(self, spread: int = 1, fixed: int | None = None) -> None:
        self.spread, self._fixed = spread, fixed
        self._timed = self._measurements = 0
        self._plain_s: deque[float] = deque(maxlen=NEIGHBOURS)
        self._ratios: deque[float] = deque(maxlen=KEPT)
        self._in_a_row = 0

    def took(self, seconds: float, *, measured: bool) -> None:
        """A step has taken so long; whether a measurement's cost is in it."""
        self._timed += 1
        self._measurements += measured
        if self._timed <= WARM_UP:
            return
        if not measured:
            self._plain_s.append(seconds)
        elif self._plain_s:
            self._ratios.append(seconds / self._step_s())

    def next(self, since: int) -> tuple[int, bool]:
        """In how many steps the workers talk to each other again, and whether they measure then.

        `since`: the steps since the last measurement.
        """
        wait = max(1, self._every() - since)
        soon = max(1, int(AGREE_S / self._step_s()))
        return (wait, True) if wait <= soon else (soon, False)

    def cost(self) -> float | None:
        """Of a measurement, in plain steps, with two standard errors added; None while it is not known."""
        if not self._ratios:
            return None
        ratio = median(self._ratios)
        distance = median(abs(each - ratio) for each in self._ratios)
        error = 1.253 * 1.483 * distance / math.sqrt(len(self._ratios))  # of the median, as of a normal distribution
        return self.spread * max(0.0, ratio - 1 + 2 * error)

    def _every(self) -> int:
        """The steps from one measurement to the next."""
        if self._fixed is not None:
            return self._fixed
        cost = self.cost()
        if cost is None or self._measurements < FIRST * self.spread:
            return self.spread + 1
        every = min(RAREST, math.ceil(cost / AIM))
        if every > self.spread:
            return every
        self._in_a_row = (self._in_a_row + 1) % CHECK_EVERY
        return self.spread if self._in_a_row else self.spread + 1

    def _step_s(self) -> float:
        """Of a plain step."""
        return max(1e-9, median(self._plain_s or (AGREE_S,)))
