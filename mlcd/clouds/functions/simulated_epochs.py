"""Attempts at an epoch on a simulated platform: their noise, failures and bills, and their schedule.

Each time is that of the equations times log-normal noise. Functions synchronise in every iteration, so the slowest one
slows all of them down, and one that dies fails the whole attempt. An attempt starts only if `Launch.most_usd` covers
its expected cost beside the allotments of the running ones. It is stopped, and lost, before it exceeds its allotment.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from mlcd.planners.functions.epoch_model.epoch import EpochModel, Parts
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation, Epoch, TrainEpochs
from mlcd.planners.functions.workload import StorageRate

MOST_TIMES_EXPECTED = 4.0
"""Largest allotment of an attempt, as a multiple of its expected cost, where the budget is limited."""


@dataclass(frozen=True)
class Faults:
    """Probabilities of faults in an attempt at an epoch.

    `death`: a function dies, and the attempt fails. `straggler`: one function is `slower` times slower, and the others
    wait for it. `throttle`: the platform delays the start, by `throttled_s` on average.
    """

    death: float = 0.0
    straggler: float = 0.0
    throttle: float = 0.0
    slower: float = 3.0
    throttled_s: float = 10.0


@dataclass(frozen=True)
class Attempt:
    """One attempt at an epoch of a trial, unless it is stopped. `lost`: it fails."""

    trial: int
    number: int
    begin_s: float
    parts: Parts
    where: Allocation
    model: EpochModel
    requests: int
    lost: bool = False

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.begin_s + self.parts.seconds

    @property
    def function_s(self) -> float:
        """Billed seconds of all its functions together."""
        return self.where.functions * self.parts.billed_s

    def usd(self, until_s: float = math.inf) -> float:
        """Its bill if everything ends at `until_s`: calls at once, requests over time, minutes rounded up."""
        if until_s <= self.begin_s:
            return 0.0
        wall_s = min(self.parts.seconds, until_s - self.begin_s)
        up_s = max(0.0, wall_s - self.parts.start_s)
        return self._once_usd + wall_s * self._wall_usd_per_s + up_s * self._up_usd_per_s

    def within(self, most_usd: float) -> Attempt:
        """The same attempt, stopped (and lost) before its bill exceeds this."""
        if self.usd() <= most_usd:
            return self
        left_usd = max(0.0, most_usd - self._once_usd)
        starting_usd = self.parts.start_s * self._wall_usd_per_s
        if left_usd <= starting_usd:
            starts_s = left_usd / self._wall_usd_per_s if self._wall_usd_per_s else self.parts.start_s
            return replace(self, parts=Parts(starts_s, 0.0, 0.0, 0.0), requests=0, lost=True)
        up_s = (left_usd - starting_usd) / (self._wall_usd_per_s + self._up_usd_per_s)
        return self.cut(up_s / self.parts.billed_s)

    def cut(self, share: float) -> Attempt:
        """The same attempt, lost after this share of its billed time."""
        parts = self.parts
        cut = Parts(parts.start_s, share * parts.load_s, share * parts.compute_s, share * parts.sync_s)
        return replace(self, parts=cut, requests=math.floor(share * self.requests), lost=True)

    @property
    def _rate(self) -> StorageRate:
        return self.model.tariff.storage(self.where.storage)

    @property
    def _once_usd(self) -> float:
        return self.where.functions * self.model.tariff.usd_per_call + self._rate.usd_per_minute

    @property
    def _wall_usd_per_s(self) -> float:
        return self._rate.usd_per_minute / 60

    @property
    def _up_usd_per_s(self) -> float:
        requests_usd = self.requests * self._rate.usd_per_request
        by_requests = requests_usd / self.parts.billed_s if self.parts.billed_s > 0 else 0.0
        return self.where.functions * self.model.tariff.usd_per_function_s(self.where.memory_mb) + by_requests


@dataclass(frozen=True)
class Platform:
    """Noise and faults. `noise`: standard deviation of the logarithm of every time."""

    noise: float = 0.05
    faults: Faults = field(default_factory=Faults)

    def attempt(self, rng: np.random.Generator, planned: Attempt, started_s: float = 0.0) -> Attempt:
        """Draw how an attempt ends whose functions have been starting for `started_s`."""
        parts = self._drawn(rng, planned.parts)
        lost, share = rng.random() < self.faults.death, float(rng.random())
        drawn = replace(planned, parts=replace(parts, start_s=max(0.0, parts.start_s - started_s)))
        return drawn.cut(share) if lost else drawn

    def noisy(self, rng: np.random.Generator, seconds: Iterable[float]) -> list[float]:
        """These times with noise."""
        return [each * math.exp(self.noise * float(rng.standard_normal())) for each in seconds]

    def _drawn(self, rng: np.random.Generator, truth: Parts) -> Parts:
        start_s, load_s, compute_s, sync_s = self.noisy(
            rng, (truth.start_s, truth.load_s, truth.compute_s, truth.sync_s)
        )
        if rng.random() < self.faults.straggler:
            compute_s *= self.faults.slower
        if rng.random() < self.faults.throttle:
            start_s += self.faults.throttled_s * float(rng.exponential())
        return Parts(start_s, load_s, compute_s, sync_s)


def epoch_report(tries: list[Attempt], loss: float) -> Epoch:
    """The report of an epoch: the parts of the successful attempt, and the bill of all attempts."""
    good, seconds = tries[-1], tries[-1].end_s - tries[0].begin_s
    usd, function_s = math.fsum(each.usd() for each in tries), math.fsum(each.function_s for each in tries)
    requests, retries = sum(each.requests for each in tries), len(tries) - 1
    epoch = Epoch(good.trial, good.number, seconds, usd, loss, **asdict(good.parts))
    return replace(epoch, function_s=function_s, requests=requests, retries=retries)


@dataclass
class Schedule:
    """The attempts of a launch. `planned`: an attempt without noise. `draw` adds noise. `begun`: attempts so far."""

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
