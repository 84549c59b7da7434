"""All runs of a comparison of training plans, in several processes: first the priors are learned, then the runs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd.planners.train.plans.prior import Prior
from mlcd_bench.plans.contest import PlanRun, play_plans
from mlcd_bench.plans.grey_box import learned
from mlcd_bench.plans.problem import PlanProblem

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Entry:
    """One problem and the runs to make on it."""

    problem: PlanProblem
    methods: tuple[str, ...]
    seeds: int
    probes: int

    def play(self) -> list[PlanRun]:
        """The runs: method, seed."""
        each = product(self.methods, range(self.seeds))
        return [play_plans(self.problem, method, seed, self.probes) for method, seed in each]


def informed(problems: Sequence[PlanProblem], processes: int) -> list[PlanProblem]:
    """The problems with priors learned from the other models: once for all problems with the same hidden models."""
    others = {problem.hidden: problem for problem in problems}
    priors = dict(zip(others, _map(_learn, list(others.values()), processes), strict=True))
    return [replace(problem, prior=priors[problem.hidden]) for problem in problems]


def played(entries: Sequence[Entry], processes: int) -> Iterator[list[PlanRun]]:
    """The runs of each entry, in order."""
    return _map(Entry.play, entries, processes)


def _learn(problem: PlanProblem) -> Prior | None:
    return learned(problem.others)


def _map(work: Callable[[Task], Result], tasks: Sequence[Task], processes: int) -> Iterator[Result]:
    """In this process if `processes` is 1."""
    if processes == 1 or len(tasks) < 2:
        with threadpool_limits(1):
            yield from map(work, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(tasks)), context, threadpool_limits, (1,)) as pool:
        yield from pool.map(work, tasks)
