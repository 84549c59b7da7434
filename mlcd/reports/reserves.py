"""The reserve to finish the job, after each probe; computed incrementally, since a search may have thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush, heapreplace

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import Launches, certified_rate, forecast_at, keeps_limits, objective, remaining_job
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.launch_spread import Spread
from mlcd.core.measurement import Measurement
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.service_level import certifies, keeps, value

Key = tuple[float, ...]


def reserves(job: Job, space: Space, after: Iterable[History]) -> list[Forecast | None]:
    """The reserve after each probe, from the history at that time; None if there was none."""
    kept = _Finish(job, space) if not isinstance(job.ask, ServingTask) else _Confirmation(job, space)
    return [kept.after(history) for history in after]


class _Finish:
    """For a job: the best forecast that keeps the limits or, if none does, the one that exceeds them least.

    Each measured configuration lowers the confidence in the others (`needed_confidence`), and spending only grows. So a
    forecast that breaks the limits never keeps them later, and every worst case only grows. A repeated launch is the
    exception: it changes the estimated spread of all launches, so everything is computed again.
    """

    def __init__(self, job: Job, space: Space) -> None:
        self._job, self._space, self._left = job, space, job
        self._measured, self._spread = _Measured(), Spread()
        self._best, self._nearest = _Ranking(), _Ranking()
        # Forecasts on spot machines depend on the worst case, and so on the other measurements.
        self._on_spot = any(choice.on_spot for choice in space.choices)

    def after(self, history: History) -> Forecast | None:
        goal, (changed, all_changed) = self._job.goal, self._measured.add(history)
        if all_changed:
            self._left, self._spread = remaining_job(self._job, history), history.spread
        if all_changed or self._on_spot:
            changed = list(range(len(self._measured.good)))
        for number in changed:
            ahead = self._ahead(number)
            self._best.put(number, objective(goal, ahead))
            self._nearest.put(number, (_excess(goal, ahead),))
        first = self._best.first(lambda number: keeps_limits(goal, history, self._ahead(number)))
        if first is None:
            first = self._nearest.least(lambda number: (_excess(goal, self._ahead(number)),))
        return None if first is None else self._ahead(first)

    def _ahead(self, number: int) -> Forecast:
        m = self._measured.good[number]
        counted_on = certified_rate(self._job.goal.confidence, self._spread, self._measured.launches, m)
        return forecast_at(self._left, self._space, m, counted_on)


class _Confirmation:
    """For a service: the cost of one more trial of the best configuration, if it is not certified yet."""

    def __init__(self, job: Job, space: Space) -> None:
        self._job, self._space = job, space
        self._measured, self._best = _Measured(), _Ranking()

    def after(self, history: History) -> Forecast | None:
        good = self._measured.good
        for number in self._measured.add(history)[0]:
            m = good[number]
            rank = (-certifies(self._job, m), -value(self._job, m), m.configuration.usd_per_hour)
            self._best.put(number, rank if keeps(self._job, m) else None)
        first = self._best.first()
        if first is None or certifies(self._job, good[first]):
            return None
        seconds, usd = self._space.worst_probe(good[first].configuration)
        return Forecast(seconds, usd, seconds, usd)


class _Measured:
    """The successful measurements of a growing history, and its launches by configuration; reads only new entries."""

    def __init__(self) -> None:
        self.good: list[Measurement] = []
        self.launches: Launches = {}
        self._numbers: dict[Configuration, int] = {}
        self._launched: set[Configuration] = set()
        self._probes = self._runs = 0
        self._saved_samples = -1.0

    def add(self, history: History) -> tuple[list[int], bool]:
        """The numbers of new or changed measurements, and whether every forecast has changed.

        They all change when a launch was repeated, or when more work is saved, so that less is left to do.
        """
        probes, runs = history.measurements[self._probes :], history.runs[self._runs :]
        self._probes, self._runs = len(history.measurements), len(history.runs)
        repeated = False
        for m in (*probes, *runs):
            repeated |= m.ok and m.configuration in self._launched
            self._launched |= {m.configuration} if m.ok else set()
        saved_before, saved = self._saved_samples, [m.saved_samples for m in (*probes, *runs)]
        self._saved_samples = max([saved_before, history.saved_before, *saved])
        return [self._pool(m) for m in probes if m.ok], repeated or self._saved_samples > saved_before

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
    """A priority queue of numbers by key, smallest first; ties by number."""

    def __init__(self) -> None:
        self._keys: dict[int, Key | None] = {}
        self._heap: list[tuple[Key, int]] = []

    def put(self, number: int, key: Key | None) -> None:
        """Set or replace its key; None removes it."""
        self._keys[number] = key
        if key is not None:
            heappush(self._heap, (key, number))

    def first(self, stays: Callable[[int], bool] = lambda _: True) -> int | None:
        """The first one for which `stays` is true; those before it are removed."""
        while self._heap:
            key, number = self._heap[0]
            if self._keys[number] == key and stays(number):
                return number
            heappop(self._heap)  # outdated, if its key has changed
        return None

    def least(self, key_now: Callable[[int], Key]) -> int | None:
        """The first one by its current key; keys must only have grown since `put`."""
        while self._heap:
            key, number = self._heap[0]
            if self._keys[number] != key:
                heappop(self._heap)  # outdated
            elif (now := key_now(number)) == key:
                return number
            else:
                self._keys[number] = now
                heapreplace(self._heap, (now, number))
        return None


def _excess(goal: Goal, ahead: Forecast) -> float:
    """The worst case as a share of the limit that it exceeds most."""
    budget = ahead.worst_usd / goal.budget_usd if goal.budget_usd else 0.0
    deadline = ahead.worst_seconds / goal.deadline_s if goal.deadline_s else 0.0
    return max(budget, deadline)
