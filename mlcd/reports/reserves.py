"""What had to be kept to finish, after each probe. It is found along the way, since a search may have thousands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush, heapreplace

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import Launches, forecast_at, keeps_limits, objective, remaining, slow_rate
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.launch_spread import Spread
from mlcd.core.measurement import Measurement
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.promise import certifies, keeps, value

Key = tuple[float, ...]


def reserves(job: Job, space: Space, after: Iterable[History]) -> list[Forecast | None]:
    """What had to be kept after each probe, from how the run stood then; None: nothing."""
    kept = _Finish(job, space) if not isinstance(job.ask, ServingTask) else _Confirmation(job, space)
    return [kept.after(history) for history in after]


class _Finish:
    """Of a job: the best finish that is safe or, where none is, the one that is nearest to safe.

    Each configuration that is measured makes the others a little less sure (`needed_confidence`), and what is gone only
    grows: what is not safe does not become so, and every finish only becomes dearer. Until a launch is repeated: it
    tells of all of them how far launches differ.
    """

    def __init__(self, job: Job, space: Space) -> None:
        self._job, self._space = job, space
        self._left, self._saved_samples = job, 0.0
        self._seen = _Seen()
        self._spread: Spread | None = None
        self._best, self._nearest = _Ranking(), _Ranking()

    def after(self, history: History) -> Forecast | None:
        seen, goal, repeats = self._seen, self._job.goal, self._seen.repeats
        changed = seen.add(history)
        if seen.saved_samples > self._saved_samples:  # there is less to do, wherever that is
            self._saved_samples, self._left = seen.saved_samples, remaining(self._job, history)
            changed = list(range(len(seen.good)))
        if self._spread is None or seen.repeats > repeats:
            self._spread, changed = history.spread, list(range(len(seen.good)))
        for number in changed:
            ahead = self._ahead(number)
            self._best.put(number, objective(goal, ahead))
            self._nearest.put(number, (_excess(goal, ahead),))
        first = self._best.first(lambda number: keeps_limits(goal, history, self._ahead(number)))
        if first is None:
            first = self._nearest.least(lambda number: (_excess(goal, self._ahead(number)),))
        return None if first is None else self._ahead(first)

    def _ahead(self, number: int) -> Forecast:
        m = self._seen.good[number]
        counted_on = slow_rate(self._job.goal.confidence, self._spread or Spread(), self._seen.launches, m)
        return forecast_at(self._left, self._space, m, counted_on)


class _Confirmation:
    """Of a service: trying the best one once more, where it is not certain yet (see `promise.best`)."""

    def __init__(self, job: Job, space: Space) -> None:
        self._job, self._space = job, space
        self._seen, self._best = _Seen(), _Ranking()

    def after(self, history: History) -> Forecast | None:
        for number in self._seen.add(history):
            m = self._seen.good[number]
            rank = (-certifies(self._job, m), -value(self._job, m), m.configuration.usd_per_hour)
            self._best.put(number, rank if keeps(self._job, m) else None)
        first = self._best.first()
        if first is None or certifies(self._job, self._seen.good[first]):
            return None
        seconds, usd = self._space.worst_probe(self._seen.good[first].configuration)
        return Forecast(seconds, usd, seconds, usd)


class _Seen:
    """`good` and `saved_samples` of a history that grows; only what is new in it is looked at.

    `repeats` counts launches of what had been launched before.
    """

    def __init__(self) -> None:
        self.good: list[Measurement] = []
        self.launches: Launches = {}
        self.repeats = 0
        self._launched: Counter[Configuration] = Counter()
        self.saved_samples = 0.0
        self._numbers: dict[Configuration, int] = {}
        self._probes = self._runs = 0

    def add(self, history: History) -> list[int]:
        """The numbers of what is good that are new or have changed."""
        probes, runs = history.measurements[self._probes :], history.runs[self._runs :]
        self._probes, self._runs = len(history.measurements), len(history.runs)
        launched = [m.configuration for m in (*probes, *runs) if m.ok]
        self._launched.update(launched)
        self.repeats = sum(self._launched.values()) - len(self._launched)
        self.saved_samples = max(
            [self.saved_samples, history.saved_before, *(m.saved_samples for m in (*probes, *runs))]
        )
        return [self._pool(m) for m in probes if m.ok]

    def _pool(self, m: Measurement) -> int:
        number = self._numbers.setdefault(m.configuration, len(self.good))
        if number == len(self.good):
            self.good.append(m)
            self.launches[m.configuration] = [m]
        else:
            self.good[number] = self.good[number].pooled(m)
            self.launches[m.configuration].append(m)
        return number


class _Ranking:
    """Numbers by their keys, the smallest first, and of equal ones the smaller number."""

    def __init__(self) -> None:
        self._keys: dict[int, Key | None] = {}
        self._heap: list[tuple[Key, int]] = []

    def put(self, number: int, key: Key | None) -> None:
        """Rank it so, in place of before; None: not at all."""
        self._keys[number] = key
        if key is not None:
            heappush(self._heap, (key, number))

    def first(self, stays: Callable[[int], bool] = lambda _: True) -> int | None:
        """The first one that stays; those before it are dropped."""
        while self._heap:
            key, number = self._heap[0]
            if self._keys[number] == key and stays(number):
                return number
            heappop(self._heap)  # or it was ranked again since
        return None

    def least(self, key_now: Callable[[int], Key]) -> int | None:
        """The first one by what its key is now, where keys have only grown since they were put."""
        while self._heap:
            key, number = self._heap[0]
            if self._keys[number] != key:
                heappop(self._heap)  # it was ranked again since
            elif (now := key_now(number)) == key:
                return number
            else:
                self._keys[number] = now
                heapreplace(self._heap, (now, number))
        return None


def _excess(goal: Goal, ahead: Forecast) -> float:
    """How far beyond the limits a finish is, as a share of the limit it breaks most."""
    budget = ahead.worst_usd / goal.budget_usd if goal.budget_usd else 0.0
    deadline = ahead.worst_seconds / goal.deadline_s if goal.deadline_s else 0.0
    return max(budget, deadline)
