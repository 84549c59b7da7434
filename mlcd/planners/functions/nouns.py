"""Training on functions: what is trained, what may be allocated to it, what that costs, and what was seen of it.

Symbols, as in Wu et al. (CE-scaling, IPDPS 2023), table III

    theta = (n, m, s)   an allocation: functions, memory of each, the storage that they meet at    Allocation
    D, M, b_z           megabytes of data and of the model; samples that a function takes at once  Workload
    k = D / (n b_z)     iterations of an epoch                                                     Workload.iterations
    u(m)                seconds to work through a megabyte with memory m                           Calibration.compute
    b_s, l_s            bandwidth and latency of a storage                                         Link
    p_f, p_invk, p_s    prices of a function's time, of a call, of a storage                       Tariff
    q_i, r_i            trials and epochs of a stage                                               Stage
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar

from mlcd.core.backend import Launch
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.payload import Ask, Billing, Evidence, Plan, Setting, Work
from mlcd.core.strategy import Apply, Probe
from mlcd.planners.functions.workload import LARGEST_MB, MOST_FUNCTIONS, SMALLEST_MB, STORAGES, Tariff, Workload

MOST_ATTEMPTS = 3
"""Times that an epoch is tried: one that breaks is given up as a whole, and paid for."""
SAMPLE = 0.1
"""The share of the data on which the epochs to the target are estimated beforehand."""
DELTA = 0.1
"""How far the predicted epochs may move before the allocation is looked at again (CE-scaling, section IV-G)."""


@dataclass(frozen=True, slots=True)
class Allocation(Setting):
    """So many functions of one memory size, and the storage that they meet at: theta."""

    kind: ClassVar[str] = "functions.allocation"
    functions: int
    memory_mb: int
    storage: str

    def __str__(self) -> str:
        return f"{self.functions} x {self.memory_mb} MB, {self.storage}"

    def words(self, machines: str, nodes: int) -> str:
        """The nodes are the functions of all trials that run at once."""
        trials = nodes // self.functions
        return str(self) if trials <= 1 else f"{self}, {trials} trials at once"


@dataclass(frozen=True, slots=True)
class ByUse(Billing):
    """The time of functions, and besides `once_usd` for the calls and requests of one attempt, and servers by the hour.

    An epoch that breaks is tried again as a whole: `once_usd` is then paid again.
    """

    kind: ClassVar[str] = "functions.by-use"
    metered: ClassVar[bool] = True
    once_usd: float = 0.0
    beside_usd_per_hour: float = 0.0

    def usd_per_hour(self, nodes_usd_per_hour: float) -> float:
        """Of the functions, and of the storage's server."""
        return nodes_usd_per_hour + self.beside_usd_per_hour

    def usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """Of one attempt."""
        return self.once_usd + self.usd_per_hour(nodes_usd_per_hour) * seconds / 3_600

    def worst_usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """Of as many attempts as are made."""
        return self.usd(nodes_usd_per_hour, seconds) + (MOST_ATTEMPTS - 1) * self.once_usd


@dataclass(frozen=True, slots=True)
class Stage:
    """So many trials, each of them trained for so many epochs."""

    trials: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """A hyperparameter search by successive halving: each stage keeps one trial of `eta`.

    `space`: for each hyperparameter its lowest and highest value; drawn log-uniformly from the job's seed.
    """

    trials: int
    eta: int = 2
    epochs_per_stage: int = 2
    space: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """From all trials down to one that is left: 16,384 trials by halves are 14 stages, the last of two."""
        trials = [self.trials]
        while (fewer := trials[-1] // self.eta) > 1:
            trials.append(fewer)
        return tuple(Stage(each, self.epochs_per_stage) for each in trials)

    def drawn(self, trial: int, seed: int) -> dict[str, float]:
        """The hyperparameters of a trial; each has draws of its own, whatever others there are."""
        shares = {name: Random(f"{seed}/{trial}/{name}").random() for name in self.space}
        return {n: math.exp(math.log(low) + shares[n] * math.log(high / low)) for n, (low, high) in self.space.items()}


@dataclass(frozen=True)
class FunctionsTask(Ask):
    """A job on functions: what is trained, between which ends it may be allocated, and what that costs.

    `endpoints`: where a storage is reached, as a URL; one that is not named is started on this machine where that is
    possible. `concurrency`: functions that the account lets run at once; None where nobody says. `memory_at_once_mb`:
    memory of all functions together, where the machine sets a limit. `call_s`: how long a call may take; the paper's
    models know no end. `tuning`: None for plain training. `epochs`: what the target is known or guessed to take; None
    to find out by sampling. `tariff` is frozen when a run starts.
    """

    kind: ClassVar[str] = "functions.task"
    replans: ClassVar[bool] = True
    launches_compare: ClassVar[bool] = False
    has_confidence: ClassVar[bool] = False
    workload: Workload
    functions: tuple[int, int] = (1, MOST_FUNCTIONS)
    memory_mb: tuple[int, int] = (SMALLEST_MB, LARGEST_MB)
    storages: tuple[str, ...] = STORAGES
    endpoints: Mapping[str, str] = field(default_factory=dict)
    concurrency: int | None = None
    memory_at_once_mb: int | None = None
    call_s: float = math.inf
    tuning: Tuning | None = None
    epochs: float | None = None
    delta: float = DELTA
    tariff: Tariff | None = None

    def meeting_at(self, *storages: str) -> FunctionsTask:
        """The same with these storages alone, of those that it may use."""
        return replace(self, storages=tuple(name for name in self.storages if name in storages))

    def at_once(self, allocation: Allocation, trials: int) -> int:
        """How many of so many trials fit beside each other; at least one, or the allocation would not exist."""
        bounds = [trials]
        if self.concurrency is not None:
            bounds.append(self.concurrency // allocation.functions)
        if self.memory_at_once_mb is not None:
            bounds.append(self.memory_at_once_mb // (allocation.functions * allocation.memory_mb))
        return max(1, min(bounds))

    def beside(self, one: Allocation, other: Allocation) -> bool:
        """Whether the functions of both may run at once."""
        functions = one.functions + other.functions
        memory_mb = one.functions * one.memory_mb + other.functions * other.memory_mb
        return (self.concurrency is None or functions <= self.concurrency) and (
            self.memory_at_once_mb is None or memory_mb <= self.memory_at_once_mb
        )


@dataclass(frozen=True, slots=True)
class TrainEpochs(Work):
    """What functions do in one launch: so many epochs of each of these trials, which have so many behind them.

    `then`: the allocation of the epoch after, where one is known to come: its functions are started while this one
    still runs (CE-scaling's delayed restart). `sample_of`: train a sample of the data only, on one function, as
    so many would train all of it; see `Workload.sampled`.
    """

    kind: ClassVar[str] = "functions.epochs"
    epochs: int
    done: int = 0
    trials: tuple[int, ...] = (0,)
    then: Allocation | None = None
    sample_of: int | None = None


@dataclass(frozen=True, slots=True)
class Epoch(Evidence):
    """One epoch of one trial, as its functions told it: how long, for how much, and the loss at its end.

    The parts are of the slowest function. `number` counts from 1. `function_s`: what the functions are billed for,
    together, attempts that came to nothing included; `retries`: how many there were of these.
    """

    kind: ClassVar[str] = "functions.epoch"
    trial: int
    number: int
    seconds: float
    usd: float
    loss: float
    start_s: float = 0.0
    load_s: float = 0.0
    compute_s: float = 0.0
    sync_s: float = 0.0
    function_s: float = 0.0
    requests: int = 0
    retries: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Calibrated(Evidence):
    """What one calibration probe has measured, on one allocation.

    `s_per_mb`: u(m). `load_mb_per_s`: reading the data. `start_s`: from the call until the last function was up.
    `sync_s`: one exchange of the model between all functions. `transfers`: single objects, (megabytes, seconds).
    `usd`: what it has used, where that was metered.
    """

    kind: ClassVar[str] = "functions.calibrated"
    allocation: Allocation
    s_per_mb: float
    load_mb_per_s: float
    start_s: float
    sync_s: float
    transfers: tuple[tuple[float, float], ...] = ()
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class FunctionsEvidence(Evidence):
    """What functions did, or found out, and what they were asked for."""

    kind: ClassVar[str] = "functions.evidence"
    epochs: tuple[Epoch, ...] = ()
    calibrated: Calibrated | None = None
    work: TrainEpochs | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What a storage does: l_s, b_s; and, where exchanges were measured, what one took: (functions, seconds).

    `start`: seconds until functions that meet there are up, and more for each, where that was seen.
    """

    latency_s: float
    mb_per_s: float
    exchanges: tuple[tuple[int, float], ...] = ()
    start: tuple[float, float] | None = None


@dataclass(frozen=True)
class Calibration:
    """What is known of a platform and of a job on it; `modelled` where it was not measured, and `source` says by whom.

    `compute`: (memory in MB, u(m)) rising in memory. `start`: seconds until a call is up, and more for each function.
    """

    compute: tuple[tuple[float, float], ...]
    links: Mapping[str, Link]
    load_mb_per_s: float
    start: tuple[float, float] = (0.0, 0.0)
    rel_error: float = 0.0
    modelled: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """A stage with what is allocated to each of its trials: how long it is to take, and cost, in all."""

    stage: Stage
    allocation: Allocation
    seconds: float
    usd: float


@dataclass(frozen=True)
class StagePlan:
    """Allocations for all stages, one after the other, and the method that made it."""

    method: str
    stages: tuple[Planned, ...]

    @property
    def seconds(self) -> float:
        """T: stages follow each other."""
        return sum(each.seconds for each in self.stages)

    @property
    def usd(self) -> float:
        """C."""
        return sum(each.usd for each in self.stages)


@dataclass(frozen=True)
class FunctionsPlan(Plan):
    """The stages as each method would plan them, the chosen plan first, and the calibration that they rest on."""

    kind: ClassVar[str] = "functions.plan"
    plans: tuple[StagePlan, ...] = ()
    calibration: Calibration | None = None


def on_functions(job: Job) -> FunctionsTask:
    """What the job does on functions; asking another one is a bug."""
    if not isinstance(job.ask, FunctionsTask):
        raise ValueError(f"'{job.name}' is not a job on functions")
    return job.ask


def allocation_of(configuration: Configuration) -> Allocation | None:
    """What each trial is given; None of machines."""
    return configuration.setting if isinstance(configuration.setting, Allocation) else None


def evidence_of(measurement: Measurement) -> FunctionsEvidence:
    """What functions did in a launch, or found out; nothing where no functions were up."""
    return measurement.evidence if isinstance(measurement.evidence, FunctionsEvidence) else FunctionsEvidence()


def plan_of(decision: Decision) -> FunctionsPlan:
    """The stages that were decided; none where nothing was planned."""
    return decision.plan if isinstance(decision.plan, FunctionsPlan) else FunctionsPlan()


def work_of(step: Probe | Apply | Launch) -> TrainEpochs | None:
    """The epochs and trials that a launch is for; None where it calibrates."""
    return step.work if isinstance(step.work, TrainEpochs) else None
