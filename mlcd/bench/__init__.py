"""Measuring methods against an oracle, on recordings."""

from mlcd.bench.contest import Crash, Task, contest, tasks
from mlcd.bench.journal import Journal
from mlcd.bench.problems import Problem, Scenario, problems, rescaled
from mlcd.bench.train import Result, Setting, run

__all__ = [
    "Crash",
    "Journal",
    "Problem",
    "Result",
    "Scenario",
    "Setting",
    "Task",
    "contest",
    "problems",
    "rescaled",
    "run",
    "tasks",
]
