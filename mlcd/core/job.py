"""The workload and what its owner wants of it. `jobfile/` reads one from YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any

from mlcd.core.payload import Ask


class Objective(StrEnum):
    """What is made small: the total time or the total cost; or the knee, beyond which money buys little speed.

    Where answers are counted: the most of them a second, the fewest dollars an hour, or the most for a dollar.
    """

    FASTEST = "fastest"
    CHEAPEST = "cheapest"
    KNEE = "knee"
    PER_DOLLAR = "per-dollar"


class Communication(StrEnum):
    """How the workers exchange gradients."""

    ALL_REDUCE = "all-reduce"
    PARAMETER_SERVER = "parameter-server"


CONFIDENCE = 0.99
"""That a certified job is done within its limits, where its owner asks for no other."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective under limits on the whole: probes and the final run together. None means no limit.

    `stated`: the owner named the objective; what is usual for a command gives way then. `confidence`: how sure a
    certificate has to be that the job is done within the limits.
    """

    objective: Objective = Objective.FASTEST
    budget_usd: float | None = None
    deadline_s: float | None = None
    stated: bool = field(default=False, compare=False)
    confidence: float = CONFIDENCE

    @property
    def limited(self) -> bool:
        """Whether there is any limit to keep."""
        return self.budget_usd is not None or self.deadline_s is not None

    @property
    def most_usd(self) -> float:
        """The budget; infinite if there is none."""
        return inf if self.budget_usd is None else self.budget_usd

    @property
    def most_s(self) -> float:
        """The deadline; infinite if there is none."""
        return inf if self.deadline_s is None else self.deadline_s

    def allows(self, usd: float, seconds: float) -> bool:
        """Whether these totals are within the limits."""
        return usd <= self.most_usd and seconds <= self.most_s


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
    have measured says where to look. Methods that know nothing of these ignore them. `trials`: how many probes at the
    most, where a planner counts them.
    `max_probe_usd`: the most that one probe may cost. `max_hourly_usd`: the most that all machines which are up at once
    may cost an hour. None for no limit; a run that starts without a `max_probe_usd` is given one (see
    `Planner.probe_limit_usd`), unless it is infinite: that is how 'none' is kept until then. `max_probe_stated`: the
    owner named it; else it follows a budget that is changed. `zones`: where spot machines may be rented; empty: in any
    zone.
    """

    method: str = "net-value"
    nodes: tuple[int, int] = (1, 50)
    instances: tuple[str, ...] = ("*",)
    seed: int = 0
    parallel: int = 4
    early_look: float | None = 0.3
    earlier: bool = True
    trials: int | None = None
    max_probe_usd: float | None = None
    max_probe_stated: bool = False
    max_hourly_usd: float | None = None
    zones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The metric that ends a job, as in 'accuracy >= 0.97'."""

    metric: str
    value: float
    at_least: bool = True

    def __str__(self) -> str:
        return f"{self.metric} {'>=' if self.at_least else '<='} {self.value:g}"

    def reached(self, metric: float) -> bool:
        """Whether this is good enough; what is not a number never is."""
        return metric >= self.value if self.at_least else metric <= self.value


def parse_target(written: object) -> Target:
    """'accuracy >= 0.97', 'loss <= 0.2', 'top-1 >= 75 %'."""
    expected = f"'{written}': expected a metric and its value, such as 'accuracy >= 0.97' or 'loss <= 0.2'"
    name = r"[A-Za-z_][\w./-]*+(?: ++[\w./-]++)*+"  # possessive: no text makes it try all ways to split the blanks
    match = re.fullmatch(rf"\s*+({name})\s*+(>=|<=)\s*+(-?(?:\d+\.?\d*|\.\d+))\s*+(%?)\s*+", str(written))
    if match is None:
        raise ValueError(expected)
    return Target(match[1], float(match[3]) / (100 if match[4] else 1), match[2] == ">=")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two jobs train alike: the same model on the same data, by the same optimiser."""

    architecture: str = ""
    data: str = ""
    optimizer: str = ""


SUBMITTED = "submitted:"
"""The `folder` of a job that was submitted to a server: it has none, and runs in an empty one."""
SIMULATED, RECORDED = "simulated", "recorded"


def only_computed(on: str) -> bool:
    """Whether nothing is rented at a place and no command of a job run: all of it is simulated, or replayed."""
    name, _, rest = on.partition(":")
    return name in (SIMULATED, RECORDED) or rest == SIMULATED


@dataclass(frozen=True)
class Job:
    """A job: so many samples of work, a goal, and the task to run.

    `ask`: what it asks of its planner; None for a job that is trained once on machines. `blocks`: what its file says to
    each planner, by the planner's name, until one of them is asked.
    `task` holds the SkyPilot part of the job file (setup, run, envs, resources ...) in SkyPilot's own
    words: it is carried to whatever runs the job, and only its `resources` narrow the search.
    `checkpoints`: the job saves its work as it goes and goes on from there, so that what a probe does counts.
    `dataset_samples`: how many make an epoch. `target`: the metric that ends the job before its work does. `report`: a
    pattern on the job's output that tells its progress, for a script without the tracker. `folder`: where the job file
    lies. `egress_gb`: the most that each launch, all of its nodes together, sends out of its region. `checkpoint_gb`:
    how large a checkpoint is, which is moved when the job goes on in another region; None: nobody said.
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
    dataset_samples: float | None = None
    target: Target | None = None
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    ask: Ask | None = None
    blocks: Mapping[str, Ask] = field(default_factory=dict)
    egress_gb: float = 0.0
    checkpoint_gb: float | None = None

    def asking(self, ask: Ask | None) -> Job:
        """The job with this to be done, whatever its file says to other planners."""
        return replace(self, ask=ask, blocks={})
