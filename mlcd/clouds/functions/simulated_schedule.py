"""Which attempt starts when on a simulated platform, within the number of parallel trials and the budget.

An attempt starts only if `Launch.most_usd` covers its expected cost beside the allotments of the running ones. It is
stopped, and lost, before it exceeds its allotment.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from mlcd.clouds.functions.simulated_epochs import Attempt
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, TrainEpochs

MOST_TIMES_EXPECTED = 4.0
"""Largest allotment of an attempt, as a multiple of its expected cost, where the budget is limited."""


@dataclass
class Schedule:
    """The attempts of a launch. `planned`: one without noise. `draw` adds noise. `begun`: those so far."""

    work: TrainEpochs
    slots: int
    most_usd: float
    planned: Attempt
    draw: Callable[[Attempt], Attempt]
    begun: list[Attempt] = field(default_factory=list)
    broken: Attempt | None = None

    def __iter__(self) -> Iterator[Attempt]:
        """Attempts in the order in which they end, until all is done, one epoch fails for good, or money runs out."""
        first, last = self.work.done + 1, self.work.done + self.work.epochs
        waiting = deque((trial, first) for trial in self.work.trials)
        running: list[tuple[float, int, Attempt, float]] = []
        lost: Counter[tuple[int, int]] = Counter()
        now_s, left_usd = 0.0, self.most_usd
        while True:
            while waiting and (allotted_usd := self._allotted_usd(left_usd, len(running), len(waiting))) is not None:
                trial, number = waiting.popleft()
                left_usd -= allotted_usd if allotted_usd < math.inf else 0.0
                attempt = self.draw(replace(self.planned, trial=trial, number=number, begin_s=now_s))
                self.begun.append(attempt.within(allotted_usd))
                heapq.heappush(running, (self.begun[-1].end_s, trial, self.begun[-1], allotted_usd))
            if not running:
                return
            now_s, trial, attempt, allotted_usd = heapq.heappop(running)
            left_usd += allotted_usd - attempt.usd() if allotted_usd < math.inf else 0.0
            key = (trial, attempt.number)
            lost[key] += attempt.lost
            if lost[key] == MOST_ATTEMPTS:
                self.broken = attempt
            yield attempt
            if self.broken is not None:
                return
            if attempt.lost or attempt.number < last:  # a trial keeps its slot until it is done
                waiting.appendleft((trial, attempt.number + (not attempt.lost)))

    def _allotted_usd(self, left_usd: float, running: int, waiting: int) -> float | None:
        """The allotment of the next attempt; None if there is no free slot or not enough money."""
        idle = min(self.slots - running, waiting)
        if idle == 0:
            return None
        if left_usd == math.inf:
            return math.inf
        needed_usd = self.planned.usd()
        share_usd = min(left_usd / idle, MOST_TIMES_EXPECTED * needed_usd)
        if share_usd >= needed_usd:
            return share_usd
        return left_usd if left_usd >= needed_usd and not running else None
