"""What had to be kept to finish, after each probe. It is found along the way, since a search may have thousands."""

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
        self._job, self._space, self._left = job, space, job
        self._measured, self._spread = _Measured(), Spread()
        self._best, self._nearest = _Ranking(), _Ranking()
        # What is expected on spot machines depends on the worst case, and so on what else was measured.
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
    """Of a service: trying the best one once more, where it is not certain yet (see `promise.best`)."""

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
    """`good` of a history that grows, and its launches by configuration; only what is new in it is looked at."""

    def __init__(self) -> None:
        self.good: list[Measurement] = []
        self.launches: Launches = {}
        self._numbers: dict[Configuration, int] = {}
        self._launched: set[Configuration] = set()
        self._probes = self._runs = 0
        self._saved_samples = -1.0

    def add(self, history: History) -> tuple[list[int], bool]:
        """The numbers of what is good that are new or have changed; and whether every forecast has.

        They have where a launch was repeated, and where more work is saved: there is less to do, wherever that is.
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
