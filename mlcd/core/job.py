"""A job: the workload, the goal and its limits, and how to search. `planners/jobfile/` reads one from YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any

from mlcd.core.payload import Ask


class Objective(StrEnum):
    """What to optimise: time, cost, or the knee, beyond which more money buys little speed.

    When serving: the most answers a second, the fewest dollars an hour, or the most answers for a dollar.
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
"""Default probability with which a certified job ends within its limits."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective, and limits on probes and final run together. None means no limit.

    `stated`: the owner named the objective, so a command's default does not replace it. `confidence`: the probability
    of ending within the limits that a certificate needs.
    """

    objective: Objective = Objective.FASTEST
    budget_usd: float | None = None
    deadline_s: float | None = None
    stated: bool = field(default=False, compare=False)
    confidence: float = CONFIDENCE

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
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
    """What the owner knows about the model. All optional; a search needs none of it."""

    parameters: float | None = None
    flops_per_sample: float | None = None
    global_batch: int | None = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """How to search, and where.

    `parallel`: most probes at once. `early_look`: the share of a probe after which a method may end it early; None for
    whole probes. `earlier`: whether measurements of earlier runs of the same job guide the search. Methods may ignore
    these three. `trials`: most probes, for planners that count them. `max_hourly_usd`: limit on the hourly price of all
    machines that are up at once; None for no limit. `max_probe_usd`: limit on the cost of one probe. While None, a new
    run gets a default (`Planner.probe_limit_usd`); infinite means that the owner wrote 'none'. `max_probe_stated`: the
    owner set it; otherwise it changes in proportion to a changed budget. `zones`: where spot machines may be rented;
    empty: anywhere.
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
        """Whether this value reaches the target; NaN never does."""
        return metric >= self.value if self.at_least else metric <= self.value


def parse_target(written: object) -> Target:
    """Parse 'accuracy >= 0.97', 'loss <= 0.2', 'top-1 >= 75 %'."""
    expected = f"'{written}': expected a metric and its value, such as 'accuracy >= 0.97' or 'loss <= 0.2'"
    name = r"[A-Za-z_][\w./-]*+(?: ++[\w./-]++)*+"  # possessive quantifiers: no backtracking
    match = re.fullmatch(rf"\s*+({name})\s*+(>=|<=)\s*+(-?(?:\d+\.?\d*|\.\d+))\s*+(%?)\s*+", str(written))
    if match is None:
        raise ValueError(expected)
    return Target(match[1], float(match[3]) / (100 if match[4] else 1), match[2] == ">=")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two jobs have in common if they train alike: model, data and optimiser, in the owner's words."""

    architecture: str = ""
    data: str = ""
    optimizer: str = ""


SUBMITTED = "submitted:"
"""The `folder` of a job that was submitted to a server without files: it runs in an empty folder."""
SIMULATED, RECORDED = "simulated", "recorded"


def only_computed(on: str) -> bool:
    """Whether a place only simulates or replays: it rents nothing and runs none of the job's commands."""
    name, _, rest = on.partition(":")
    return name in (SIMULATED, RECORDED) or rest == SIMULATED


@dataclass(frozen=True)
class Job:
    """A job: its work in samples, its goal, and the task to run.

    `ask`: the planner's own part of the job, which also says whose job it is; None for plain training on machines.
    `blocks`: the planners' blocks of the job file, by planner, until one becomes the `ask`. `task`: the SkyPilot part
    of the job file, passed on unchanged; the search reads only its `resources`. `checkpoints`: the job saves its work
    and continues from it, so the work of a probe counts. `dataset_samples`: samples of an epoch. `target`: ends the job
    before its work is done. `report`: a pattern that reads progress from the job's output, for a script without the
    tracker. `folder`: that of the job file. `egress_gb`: most data that a launch sends out of its region, all nodes
    together. `checkpoint_gb`: size of a checkpoint, copied when the job moves to another region; None: unknown.
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
        """The job for the planner of this `ask`, without the blocks for other planners."""
        return replace(self, ask=ask, blocks={})
