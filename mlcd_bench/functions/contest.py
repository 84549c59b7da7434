"""Makes all runs of a comparison, in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd_bench.functions.jobs import JOBS
from mlcd_bench.functions.runs import TRAINING, TUNING, Case, Run, cases, pooled
from mlcd_bench.functions.training import train
from mlcd_bench.functions.tuning import tune


@dataclass(frozen=True)
class Setting:
    """Settings of all runs. `factors`: the limits, as multiples of the least that any plan needs."""

    trials: int
    seeds: int
    factors: tuple[float, ...]


@dataclass(frozen=True)
class Task:
    """Runs that share their inputs: a job with all methods under every limit; for training, with one seed."""

    job: str
    methods: tuple[str, ...]
    setting: Setting
    seed: int | None = None

    def runs(self) -> list[Run]:
        """Make the runs."""
        job, setting = JOBS[self.job], self.setting
        if self.seed is None:
            return tune(job, self.methods, setting.trials, setting.factors)
        return train(job, self.methods, self.seed, setting.factors)


@dataclass(frozen=True)
class Contest:
    """Results: a row for each job, phase, limit and method, and every case (for training, one for each seed)."""

    runs: list[Run]
    cases: list[Case]


def compete(
    jobs: Sequence[str],
    phases: Sequence[str],
    methods: Sequence[str],
    setting: Setting,
    processes: int = 1,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Contest:
    """Every run in order: job, phase, limit, method. The number of processes does not change the results."""
    seeds = [None] * (TUNING in phases) + list(range(setting.seeds)) * (TRAINING in phases)
    tasks = [Task(job, tuple(methods), setting, seed) for job in jobs for seed in seeds]
    runs_of_task: dict[Task, list[Run]] = {}
    for task, runs in zip(tasks, _made(tasks, processes), strict=True):
        runs_of_task[task] = sorted(runs, key=lambda run: (run.limit_kind, run.limit, methods.index(run.method)))
        report(len(runs_of_task), len(tasks))
    rows = []
    for job, tuned in product(jobs, (True, False)):
        rows += pooled([runs for task, runs in runs_of_task.items() if (task.job, task.seed is None) == (job, tuned)])
    return Contest(rows, [case for runs in runs_of_task.values() for case in cases(runs)])


def _made(tasks: Sequence[Task], processes: int) -> Iterator[list[Run]]:
    if processes == 1:
        with threadpool_limits(1):
            yield from (task.runs() for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, threadpool_limits, (1,)) as pool:
        yield from pool.map(Task.runs, tasks)
