"""Makes all runs of a comparison of methods, in several processes. A run that crashes does not end the others."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import product

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd_bench.journal import Journal
from mlcd_bench.problems import Problem
from mlcd_bench.train import Result, Setting, run

TASKS_PER_PROCESS = 3
"""Tasks submitted for each process: one that runs, and two waiting so that no process is idle."""


@dataclass(frozen=True, slots=True)
class Task:
    """A run to make: the index of its problem, the method as written, the seed."""

    problem: int
    method: str
    seed: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A run that crashed, and why."""

    recording: str
    scenario: str
    method: str
    seed: int
    because: str

    def __str__(self) -> str:
        return f"{self.method} on {self.recording}, {self.scenario}, seed {self.seed}: {self.because}"


def tasks(problems: Sequence[Problem], methods: Sequence[str], seeds: Sequence[int]) -> list[Task]:
    """All runs, in the order in which they are reported: problem, method, seed."""
    return [Task(*each) for each in product(range(len(problems)), methods, seeds)]


def contest(
    problems: Sequence[Problem],
    todo: Sequence[Task],
    setting: Setting,
    processes: int = 1,
    journal: Journal | None = None,
) -> Iterator[tuple[Task, Result | Crash]]:
    """Make the runs and yield each as it ends, those of the journal first.

    The number of processes does not change the results.
    """
    left = []
    for task in todo:
        known = journal.find(problems[task.problem], task.method, task.seed, setting) if journal is not None else None
        if known is None:
            left.append(task)
        else:
            yield task, known
    outcomes = _serial(problems, left, setting) if processes == 1 else _parallel(problems, left, setting, processes)
    for task, outcome in outcomes:
        if journal is not None and isinstance(outcome, Result):
            journal.add(outcome, setting)
        yield task, outcome


_PROBLEMS: Sequence[Problem] = ()
_SETTING = Setting()
"""The input of a worker process: sent once to each, since a problem is large and there are many tasks."""


def _initialize(problems: Sequence[Problem], setting: Setting) -> None:
    global _PROBLEMS, _SETTING
    _PROBLEMS, _SETTING = problems, setting
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
        threadpool_limits(1)  # the matrices are tiny, and the other cores are busy


def _attempt(task: Task) -> Result | Crash:
    try:
        return run(_PROBLEMS[task.problem], task.method, task.seed, _SETTING)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return _crash(_PROBLEMS, task, f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})")


def _crash(problems: Sequence[Problem], task: Task, because: str) -> Crash:
    problem = problems[task.problem]
    factor = f" x{problem.limit_factor:g}" if problem.limit_factor is not None else ""
    return Crash(problem.recording.name, f"{problem.scenario}{factor}", task.method, task.seed, because)


def _serial(
    problems: Sequence[Problem], left: Sequence[Task], setting: Setting
) -> Iterator[tuple[Task, Result | Crash]]:
    _initialize(problems, setting)
    with threadpool_limits(1):  # the same arithmetic, to the last digit, as in a worker process
        for task in left:
            yield task, _attempt(task)


def _parallel(
    problems: Sequence[Problem], left: Sequence[Task], setting: Setting, processes: int
) -> Iterator[tuple[Task, Result | Crash]]:
    waiting = list(reversed(left))
    while waiting:
        working: dict[Future[Result | Crash], Task] = {}
        pool = ProcessPoolExecutor(processes, initializer=_initialize, initargs=(problems, setting))
        try:
            while waiting or working:
                while waiting and len(working) < TASKS_PER_PROCESS * processes:
                    working[pool.submit(_attempt, waiting[-1])] = waiting[-1]
                    waiting.pop()
                for future in wait(working, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    yield working.pop(future), outcome
        except BrokenProcessPool:
            pass
        finally:
            pool.shutdown(cancel_futures=True)
        for task in working.values():  # a worker died: run each of these tasks alone, to find out which one killed it
            yield task, _alone(problems, task, setting)


def _alone(problems: Sequence[Problem], task: Task, setting: Setting) -> Result | Crash:
    with ProcessPoolExecutor(1, initializer=_initialize, initargs=(problems, setting)) as pool:
        try:
            return pool.submit(_attempt, task).result()
        except BrokenProcessPool:
            return _crash(problems, task, "the process died")
