"""One run of one method on one unseen model, through the product's own loop with the ledger in memory.

accuracy   after each trial: the true value of the configuration that looks best from all trials so far, over the
           optimum; trials of the same configuration count together
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd.clouds.serving.recorded import RecordedService
from mlcd.core.backend import Profiler
from mlcd.core.clock import VirtualClock
from mlcd.core.drive import search
from mlcd.core.history import History
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Measurement
from mlcd.core.version import VERSION
from mlcd.planners.serve import service_level
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import knobs_of
from mlcd.planners.serve.planner import serve_method
from mlcd_bench.serve.problem import ServeProblem
from mlcd_bench.serve.sweeps import RecordedSweeps

ERROR = 0.01
"""Relative error of a recorded trial that is replayed without noise."""
Result = TypeVar("Result")
Play = Callable[[ServeProblem, str, int, float], Result]


@dataclass(frozen=True)
class ServeResult:
    """One run: the row that `mlcd bench serve -o json` prints. Accuracy is None if no configuration keeps the caps."""

    model: str
    method: str
    seed: int
    latency_ms: float | None
    trials: list[dict[str, Any]]
    accuracy: list[float | None]

    def after(self, trials: int) -> float | None:
        """The accuracy after so many trials."""
        return self.accuracy[min(trials, len(self.accuracy)) - 1]


def play(problem: ServeProblem, method: str, seed: int, noise: float) -> ServeResult:
    """Search for an unseen model."""
    tried = trials_of(problem, method, seed, noise)
    return ServeResult(
        problem.model.facts.name,
        method,
        seed,
        problem.latency_ms,
        [_trial(problem, m, noise) for m in tried],
        accuracy(problem, tried, problem.job.search.trials or len(tried)),
    )


def trials_of(problem: ServeProblem, method: str, seed: int, noise: float) -> Sequence[Measurement]:
    """The trials of a search, in order."""
    job = replace(problem.job, search=replace(problem.job.search, method=method, seed=seed))
    clock = VirtualClock()
    backend = RecordedService(problem.recorded, problem.model, clock, noise, seed)
    profiler: Profiler = ServingProfiler(
        backend, 0.0 if noise else ERROR, tight=None, warm_up=False, stated_noise=noise
    )
    if problem.sweeps:
        profiler = RecordedSweeps(problem.recorded, problem.model, clock)
    ledger = Ledger(None)
    book = ledger.begin(job.name, clock, Started(job, problem.space, "recorded", backend.provenance, VERSION))
    strategy = serve_method(job.search, problem.knowledge)
    search(strategy, job, problem.space, profiler, book, guard=service_level.refusal, decide=service_level.decide)
    tried = book.account.history.measurements
    ledger.close()
    return tried


def accuracy(problem: ServeProblem, tried: Sequence[Measurement], trials: int) -> list[float | None]:
    """The accuracy after each trial; a search that stopped early keeps its last value."""
    if problem.optimum <= 0:
        return [None] * trials
    accuracies: list[float | None] = []
    for i in range(1, trials + 1):
        if i > len(tried):
            accuracies.append(accuracies[-1] if accuracies else 0.0)
            continue
        worths = {m.configuration: service_level.value(problem.job, m) for m in History(tuple(tried[:i])).good}
        best = max(worths, key=lambda each: worths[each], default=None)
        accuracies.append(problem.truth[best] / problem.optimum if best is not None and worths[best] > 0 else 0.0)
    return accuracies


def _trial(problem: ServeProblem, m: Measurement, noise: float) -> dict[str, Any]:
    report = {
        "knobs": dict(knobs_of(m.configuration)),
        "rps_per_usd": service_level.value(problem.job, m),
        "outcome": str(m.outcome),
    }
    return {**report, "true_rps_per_usd": problem.truth[m.configuration]} if noise else report


_PROBLEMS: Sequence[ServeProblem] = ()
_NOISE = 0.0
_PLAY: Play[Any] = play
"""The input of a worker process: sent once to each, since a problem is large and there are many runs of it."""


def _initialize(problems: Sequence[ServeProblem], noise: float, play: Play[Result]) -> None:
    global _PROBLEMS, _NOISE, _PLAY
    _PROBLEMS, _NOISE, _PLAY = problems, noise, play
    threadpool_limits(1)


def _work(task: tuple[int, str, int]) -> Any:
    place, method, seed = task
    return _PLAY(_PROBLEMS[place], method, seed, _NOISE)


def compete(
    problems: Sequence[ServeProblem],
    methods: Sequence[str],
    seeds: Sequence[int],
    noise: float,
    processes: int = 1,
    report: Callable[[int, int], None] = lambda done, of: None,
    *,
    play: Play[Result],
) -> Iterator[Result]:
    """Every run in order: model, method, seed. The number of processes does not change the results. `play`: makes one
    run."""
    tasks = list(product(range(len(problems)), methods, seeds))
    if processes == 1:
        with threadpool_limits(1):
            for i, (place, method, seed) in enumerate(tasks, start=1):
                yield play(problems[place], method, seed, noise)
                report(i, len(tasks))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _initialize, (problems, noise, play)) as pool:
        for i, result in enumerate(pool.map(_work, tasks, chunksize=4), start=1):
            yield result
            report(i, len(tasks))
