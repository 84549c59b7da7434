"""The workload and what its owner wants of it. `jobfile/` reads one from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Objective(StrEnum):
    """What is made small: the total time, or the total cost."""

    FASTEST = "fastest"
    CHEAPEST = "cheapest"


class Communication(StrEnum):
    """How the workers exchange gradients."""

    ALL_REDUCE = "all-reduce"
    PARAMETER_SERVER = "parameter-server"


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective under limits on the whole: probes and the final run together. None means no limit."""

    objective: Objective = Objective.FASTEST
    budget_usd: float | None = None
    deadline_s: float | None = None

    @property
    def limited(self) -> bool:
        """Whether there is any limit to keep."""
        return self.budget_usd is not None or self.deadline_s is not None


@dataclass(frozen=True, slots=True)
class Hints:
    """What the owner knows of the model. All optional; nothing here is needed to search."""

    parameters: float | None = None
    flops_per_sample: float | None = None
    global_batch: int | None = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """How to search, and where.

    `parallel`: how many probes may run at once. `early_look`: the share of a probe after which a method may
    ask whether the rest is worth it; None for whole probes. `earlier`: whether what earlier runs of the same job
    have measured says where to look. Methods that know nothing of these ignore them.
    """

    method: str = "net-value"
    nodes: tuple[int, int] = (1, 50)
    instances: tuple[str, ...] = ("*",)
    seed: int = 0
    parallel: int = 4
    early_look: float | None = 0.3
    earlier: bool = True


@dataclass(frozen=True)
class Job:
    """A training job: so many samples of work, a goal, and the task to run.

    `task` holds the SkyPilot part of the job file (setup, run, envs, resources ...) in SkyPilot's own
    words: it is carried to whatever runs the job, and only its `resources` narrow the search.
    `checkpoints`: the job saves its work as it goes and goes on from there, so that what a probe does counts.
    `report`: a pattern on the job's output that tells its progress, for a script without the tracker. `folder`: where
    the job file lies.
    """

    name: str
    work_samples: float
    goal: Goal = field(default_factory=Goal)
    communication: Communication = Communication.ALL_REDUCE
    hints: Hints = field(default_factory=Hints)
    search: Search = field(default_factory=Search)
    checkpoints: bool = False
    report: str = ""
    folder: str = ""
    on: str = "simulated"
    task: Mapping[str, Any] = field(default_factory=dict)
