"""What had to be kept to finish, after each probe. It is found along the way, since a search may have thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from mlcd.configuration import Configuration, Space
from mlcd.decision import Forecast
from mlcd.guarantee import fits, forecast, objective, remaining
from mlcd.history import History
from mlcd.job import Goal, Job
from mlcd.measurement import Measurement
from mlcd.service_level import certifies, keeps, value

Key = tuple[float, ...]


def reserves(job: Job, space: Space, after: Iterable[History]) -> list[Forecast | None]:
    """What had to be kept after each probe, from how the run stood then; None: nothing."""
    kept = _Finish(job, space) if job.service is None else _Confirmation(job, space)
    return [kept.after(history) for history in after]


class _Finish:
    """Of a job: the best finish that is safe or, where none is, the one that is nearest to safe."""

    def __init__(self, job: Job, space: Space) -> None:
        self._job, self._space = job, space
        self._left, self._saved_samples = job, 0.0
        self._seen, self._ahead = _Seen(), dict[int, Forecast]()
        self._best, self._nearest = _Ranking(), _Ranking()

    def after(self, history: History) -> Forecast | None:
        changed, goal = self._seen.add(history), self._job.goal
        if self._seen.saved_samples > self._saved_samples:  # there is less to do, wherever that is
            self._saved_samples, self._left = self._seen.saved_samples, remaining(self._job, history)
            changed = list(range(len(self._seen.good)))
        for number in changed:
            ahead = self._ahead[number] = forecast(self._left, self._space, self._seen.good[number])
            self._best.put(number, objective(goal, ahead))
            self._nearest.put(number, (_excess(goal, ahead),))
        # What is gone only grows: what breaks a limit now is not safe later, and is dropped.
        first = self._best.first(lambda number: _safe(goal, history, self._ahead[number]))
        if first is None:
            first = self._nearest.first()
        return None if first is None else self._ahead[first]


class _Confirmation:
    """Of a service: trying the best one once more, where it is not certain yet (see `service_level.best`)."""

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
    """`good` and `saved_samples` of a history that grows; only what is new in it is looked at."""

    def __init__(self) -> None:
        self.good: list[Measurement] = []
        self.saved_samples = 0.0
        self._numbers: dict[Configuration, int] = {}
        self._probes = self._runs = 0

    def add(self, history: History) -> list[int]:
        """The numbers of what is good that are new or have changed."""
        probes, runs = history.measurements[self._probes :], history.runs[self._runs :]
        self._probes, self._runs = len(history.measurements), len(history.runs)
        self.saved_samples = max(
            [self.saved_samples, history.saved_before, *(m.saved_samples for m in (*probes, *runs))]
        )
        return [self._pool(m) for m in probes if m.ok]

    def _pool(self, m: Measurement) -> int:
        number = self._numbers.setdefault(m.configuration, len(self.good))
        if number == len(self.good):
            self.good.append(m)
        else:
            self.good[number] = self.good[number].pooled(m)
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


def _safe(goal: Goal, gone: History, ahead: Forecast) -> bool:
    return fits(goal, gone.spent_usd + ahead.worst_usd, gone.elapsed_s + ahead.worst_seconds)


def _excess(goal: Goal, ahead: Forecast) -> float:
    """How far beyond the limits a finish is, as a share of the limit it breaks most."""
    budget = ahead.worst_usd / goal.budget_usd if goal.budget_usd else 0.0
    deadline = ahead.worst_seconds / goal.deadline_s if goal.deadline_s else 0.0
    return max(budget, deadline)
