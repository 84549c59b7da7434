"""The data types of training on functions: allocations, stages, the task, measured epochs, calibrations, plans.

Symbols, as in Wu et al. (CE-scaling, IPDPS 2023), table III

    theta = (n, m, s)   an allocation: functions, memory of each, storage that they exchange by    Allocation
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
"""How often an epoch is tried: a failed attempt is repeated as a whole, and is paid for."""
SAMPLE_SHARE = 0.1
"""The share of the data that is trained to estimate the epochs to the target."""
DELTA = 0.1
"""The relative change of the predicted epochs that makes the allocation be chosen again (CE-scaling, section IV-G)."""


@dataclass(frozen=True, slots=True)
class Allocation(Setting):
    """The number of functions, the memory of each, and the storage by which they exchange gradients: theta."""

    kind: ClassVar[str] = "functions.allocation"
    functions: int
    memory_mb: int
    storage: str

    def __str__(self) -> str:
        return f"{self.functions} x {self.memory_mb} MB, {self.storage}"

    def words(self, machines: str, nodes: int) -> str:
        """'8 x 512 MB, s3'. The nodes are the functions of all trials that run at once."""
        trials = nodes // self.functions
        return str(self) if trials <= 1 else f"{self}, {trials} trials at once"


@dataclass(frozen=True, slots=True)
class ByUse(Billing):
    """Billing by use: functions by time, `once_usd` for calls and requests of one attempt, storage servers by the hour.

    A failed attempt is repeated as a whole: `once_usd` is then paid again.
    """

    kind: ClassVar[str] = "functions.by-use"
    metered: ClassVar[bool] = True
    once_usd: float = 0.0
    beside_usd_per_hour: float = 0.0

    def usd_per_hour(self, nodes_usd_per_hour: float) -> float:
        """Dollars an hour of the functions and the storage's server."""
        return nodes_usd_per_hour + self.beside_usd_per_hour

    def usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """Dollars of one attempt."""
        return self.once_usd + self.usd_per_hour(nodes_usd_per_hour) * seconds / 3_600

    def worst_usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """Dollars of the maximal number of attempts."""
        return self.usd(nodes_usd_per_hour, seconds) + (MOST_ATTEMPTS - 1) * self.once_usd


@dataclass(frozen=True, slots=True)
class Stage:
    """A number of trials, each trained for a number of epochs."""

    trials: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """A hyperparameter search by successive halving: each stage keeps one of `eta` trials.

    `space`: for each hyperparameter its lowest and highest value; drawn log-uniformly from the job's seed.
    """

    trials: int
    eta: int = 2
    epochs_per_stage: int = 2
    space: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """From all trials down to the last: 16,384 trials with eta 2 are 14 stages, the last of two trials."""
        trials = [self.trials]
        while (fewer := trials[-1] // self.eta) > 1:
            trials.append(fewer)
        return tuple(Stage(each, self.epochs_per_stage) for each in trials)

    def hyperparameters(self, trial: int, seed: int) -> dict[str, float]:
        """The hyperparameters of a trial. The draws of one do not depend on which others there are."""
        shares = {name: Random(f"{seed}/{trial}/{name}").random() for name in self.space}
        return {n: math.exp(math.log(low) + shares[n] * math.log(high / low)) for n, (low, high) in self.space.items()}


@dataclass(frozen=True)
class FunctionsTask(Ask):
    """A job on functions: the workload, the allowed allocations, and the prices.

    `functions`, `memory_mb`: smallest and largest allowed value. `endpoints`: the URL of a storage; a storage without
    one is started on this machine if possible. `concurrency`: how many functions the account runs at once; None if not
    stated. `memory_at_once_mb`: the memory of all functions together, where the machine limits it. `call_s`: the
    longest call; the paper's models have no such limit. `tuning`: None for plain training. `epochs`: how many the
    target is known or guessed to need; None to estimate it from a sample. `tariff` is set when a run starts.
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

    def with_storages(self, *storages: str) -> FunctionsTask:
        """The same task, limited to these of its storages."""
        return replace(self, storages=tuple(name for name in self.storages if name in storages))

    def trials_at_once(self, allocation: Allocation, trials: int) -> int:
        """How many of these trials can run at once; at least one."""
        bounds = [trials]
        if self.concurrency is not None:
            bounds.append(self.concurrency // allocation.functions)
        if self.memory_at_once_mb is not None:
            bounds.append(self.memory_at_once_mb // (allocation.functions * allocation.memory_mb))
        return max(1, min(bounds))

    def fit_together(self, one: Allocation, other: Allocation) -> bool:
        """Whether the functions of both allocations can run at once."""
        functions = one.functions + other.functions
        memory_mb = one.functions * one.memory_mb + other.functions * other.memory_mb
        return (self.concurrency is None or functions <= self.concurrency) and (
            self.memory_at_once_mb is None or memory_mb <= self.memory_at_once_mb
        )


@dataclass(frozen=True, slots=True)
class TrainEpochs(Work):
    """The work of one launch: `epochs` more epochs of each of these trials, which have `done` epochs behind them.

    `then`: the allocation of the next epoch, if it is known: its functions are started while this one still runs
    (CE-scaling's delayed restart). `sample_of`: train only a sample of the data, on one function, in the same way as so
    many functions would train all of it; see `Workload.sampled`.
    """

    kind: ClassVar[str] = "functions.epochs"
    epochs: int
    done: int = 0
    trials: tuple[int, ...] = (0,)
    then: Allocation | None = None
    sample_of: int | None = None


@dataclass(frozen=True, slots=True)
class Epoch(Evidence):
    """One epoch of one trial, as reported by its functions: seconds, dollars, and the loss at its end.

    `start_s` to `sync_s` are those of the slowest function. `number` counts from 1. `function_s`: billed seconds of all
    functions together, failed attempts included; `retries`: the number of failed attempts.
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
    """The result of one calibration probe, on one allocation.

    `s_per_mb`: u(m). `load_mb_per_s`: reading the data. `start_s`: from the call until the last function had started.
    `sync_s`: one exchange of the model between all functions. `transfers`: (megabytes, seconds) of single objects.
    `usd`: its cost, if it was metered.
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
    """The epochs or the calibration of a launch, and the work that was requested."""

    kind: ClassVar[str] = "functions.evidence"
    epochs: tuple[Epoch, ...] = ()
    calibrated: Calibrated | None = None
    work: TrainEpochs | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """The speed of a storage: l_s, b_s, and measured exchanges as (functions, seconds).

    `start`: a and b of the start-up time a + b n of functions that use it, if it was measured.
    """

    latency_s: float
    mb_per_s: float
    exchanges: tuple[tuple[int, float], ...] = ()
    start: tuple[float, float] | None = None


@dataclass(frozen=True)
class Calibration:
    """The speed of a platform and of a workload on it; `modelled` if it was not measured; `source` in words.

    `compute`: (memory in MB, u(m)), memory rising. `start`: a and b of the start-up time a + b n of n functions.
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
    """A stage, the allocation of each of its trials, and the planned seconds and dollars of the whole stage."""

    stage: Stage
    allocation: Allocation
    seconds: float
    usd: float


@dataclass(frozen=True)
class StagePlan:
    """The allocations of all stages, one after the other, by one method."""

    method: str
    stages: tuple[Planned, ...]

    @property
    def seconds(self) -> float:
        """T: the stages run one after the other."""
        return sum(each.seconds for each in self.stages)

    @property
    def usd(self) -> float:
        """C."""
        return sum(each.usd for each in self.stages)


@dataclass(frozen=True)
class FunctionsPlan(Plan):
    """The stage plans of all methods, the chosen one first, and the calibration that they are based on."""

    kind: ClassVar[str] = "functions.plan"
    plans: tuple[StagePlan, ...] = ()
    calibration: Calibration | None = None


def functions_task(job: Job) -> FunctionsTask:
    """The job's task on functions; any other job is a bug."""
    if not isinstance(job.ask, FunctionsTask):
        raise ValueError(f"'{job.name}' is not a job on functions")
    return job.ask


def allocation_of(configuration: Configuration) -> Allocation | None:
    """The allocation of each trial; None for machines."""
    return configuration.setting if isinstance(configuration.setting, Allocation) else None


def evidence_of(measurement: Measurement) -> FunctionsEvidence:
    """The evidence of a launch on functions; empty if no functions have run."""
    return measurement.evidence if isinstance(measurement.evidence, FunctionsEvidence) else FunctionsEvidence()


def plan_of(decision: Decision) -> FunctionsPlan:
    """The decided plan; empty if nothing was planned."""
    return decision.plan if isinstance(decision.plan, FunctionsPlan) else FunctionsPlan()


def work_of(step: Probe | Apply | Launch) -> TrainEpochs | None:
    """The epochs and trials of a launch; None for a calibration."""
    return step.work if isinstance(step.work, TrainEpochs) else None
