"""How often the gradient noise is measured, so that measuring takes a fixed small share of the time.

A measurement slows down its own steps and a few after them, because halves of a batch disturb caches and the allocator.
All of these are timed against the plain steps just before, since the speed of a machine drifts. A measurement that
costs c plain steps is taken every c/AIM steps, so that all together take a share AIM of the time. The first ones are
taken whatever they cost, with plain steps in between, because a first estimate and its cost are needed soon.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median

AIM = 0.01
"""Share of the time for measuring. The promise is 2 %, because the cost is only an estimate."""
AGREE_S = 0.25
"""Most seconds between two exchanges in which the workers agree on leaving; longer if a step is longer."""
WARM_UP = 5
FIRST = 40
"""Steps that are not timed; first measurements that are taken whatever they cost."""
AFTER = 3
"""Steps after a measurement that are still slower."""
NEIGHBOURS, KEPT = 7, 101
"""Plain steps with which a measurement is compared; number of comparisons kept."""
RAREST = 500
CHECK_EVERY = 30
"""Of measurements too close together to be timed, every so many is delayed and timed: the cost may have changed."""


class MeasurementSchedule:
    """Decides when to measure next.

    `spread`: steps that a measurement takes. `fixed`: steps from one to the next, whatever it costs.
    """

    def __init__(self, spread: int = 1, fixed: int | None = None) -> None:
        self.spread, self._fixed = spread, fixed
        self._timed = self._measurements = 0
        self._plain_s: deque[float] = deque(maxlen=NEIGHBOURS)
        self._slowed_s: list[float] | None = None
        """Seconds of the steps of the measurement that is being timed."""
        self._costs: deque[float] = deque(maxlen=KEPT)
        """Costs of measurements, in plain steps."""
        self._close = 0

    def took(self, seconds: float, *, measured: bool) -> None:
        """Record the seconds of a step. `measured`: whether a measurement was in progress."""
        self._timed += 1
        self._measurements += measured
        if self._timed <= WARM_UP:
            return
        if measured and (self._slowed_s is None or len(self._slowed_s) >= self.spread):
            # If another one is still being timed, both are too close together to be timed.
            self._slowed_s = [] if self._slowed_s is None and self._plain_s else None
        if self._slowed_s is None:
            if not measured:
                self._plain_s.append(seconds)
            return
        self._slowed_s.append(seconds)
        if len(self._slowed_s) >= self.spread + AFTER:
            self._costs.append(sum(self._slowed_s) / self._step_s() - len(self._slowed_s))
            self._slowed_s = None

    def next(self, since: int) -> tuple[int, bool]:
        """Steps until the next exchange, and whether it measures. `since`: steps since the last measurement."""
        wait = max(1, self._every() - since)
        soon = max(1, int(AGREE_S / self._step_s()))
        return (wait, True) if wait <= soon else (soon, False)

    def cost(self) -> float | None:
        """Cost of a measurement in plain steps, plus two standard errors; None while unknown."""
        if not self._costs:
            return None
        middle = median(self._costs)
        distance = median(abs(each - middle) for each in self._costs)
        error = 1.253 * 1.483 * distance / math.sqrt(len(self._costs))  # of the median of a normal distribution
        return max(0.0, middle + 2 * error)

    def _every(self) -> int:
        """Steps from one measurement to the next."""
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
        """Seconds of a plain step."""
        return max(1e-9, median(self._plain_s or (AGREE_S,)))
