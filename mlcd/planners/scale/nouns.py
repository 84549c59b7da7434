"""The data types of `mlcd scale`: the task, the batch, gradient noise, and the space of workers x batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.payload import Ask, Evidence, Setting, Work
from mlcd.planners.train.nouns import PlannedTraining


class LearningRate(StrEnum):
    """How the learning rate follows the batch."""

    NONE = "none"
    LINEAR = "linear"
    SQUARE_ROOT = "sqrt"
    ADASCALE = "adascale"


class Mode(StrEnum):
    """How much of the space is probed: everything, a few extreme configurations, or nothing."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Dollars an hour for each CPU and each GB, where a node is rented with only the memory that its batch needs.

    Tyagi and Sharma (Scavenger), section V-D. A node with b samples needs `base_gb` + b x `gb_per_sample`.
    """

    usd_per_cpu_hour: float
    usd_per_gb_hour: float
    base_gb: float = 1.0
    gb_per_sample: float = 0.0


@dataclass(frozen=True, slots=True)
class ScalingTask(Ask):
    """What may change while the job runs, and how to search it.

    `batches`: the allowed global batches; empty if the job keeps its own. `epochs`: how many epochs an earlier run
    needed to the target, at the batch of the hints; None if unknown. `planned`: the training plans of a language model;
    its plan and its batch never change.
    """

    kind: ClassVar[str] = "scale.task"
    may_be_on_trial: ClassVar[bool] = False
    workers: tuple[int, int] = (1, 8)
    batches: tuple[int, ...] = ()
    mode: Mode = Mode.PARTIAL
    learning_rate: LearningRate = LearningRate.NONE
    epochs: float | None = None
    price: UnitPrice | None = None
    planned: PlannedTraining | None = None


@dataclass(frozen=True, slots=True)
class Batch(Setting):
    """The global batch."""

    kind: ClassVar[str] = "scale.batch"
    samples: int

    def words(self, machines: str, nodes: int) -> str:
        """'3 x c5.xlarge, batch 128'."""
        return f"{machines}, batch {self.samples}"

    def suits(self, nodes: int, offer: Offer) -> bool:
        """Whether all workers get an equal share."""
        return self.samples % (nodes * offer.workers) == 0


@dataclass(frozen=True, slots=True)
class MeasureNoise(Work):
    """A probe that also measures the gradient noise, and goes on until it is known."""

    kind: ClassVar[str] = "scale.measure-noise"


@dataclass(frozen=True, slots=True)
class Noise(Evidence):
    """Gradient noise: how much the gradients of single samples differ.

    `scale`: the batch, in samples, at which noise and signal are equal (McCandlish et al. 2018); `rel_error`: one
    standard error of its log. `gamma`: Scavenger's measure of it, for the workers that it was measured on.
    """

    kind: ClassVar[str] = "scale.noise"
    scale: float
    rel_error: float
    stable: bool = True
    gamma: float | None = None


def scaling_task(job: Job) -> ScalingTask | None:
    """The job's scaling task; None if it is not scaled."""
    return job.ask if isinstance(job.ask, ScalingTask) else None


def batch_of(configuration: Configuration) -> int | None:
    """The configuration's global batch; None if the job keeps its own."""
    return configuration.setting.samples if isinstance(configuration.setting, Batch) else None


def noise_of(measurement: Measurement) -> Noise | None:
    """The measured gradient noise; None if it was not measured."""
    return measurement.evidence if isinstance(measurement.evidence, Noise) else None


def scaling_space(space: Space, job: Job) -> Space:
    """A cloud's space with the job's batches, limited to node counts that give an allowed number of workers."""
    task = scaling_task(job) or ScalingTask()
    choices = [choice for each in space.choices for choice in _choices(each, task)]
    possible = tuple(choice for choice in choices if choice.configurations)
    if not possible:
        raise UserError(_why_empty(space, task))
    return replace(space, choices=possible)


def _choices(choice: Choice, task: ScalingTask) -> list[Choice]:
    fewest, most = task.workers
    nodes = tuple(n for n in choice.nodes if fewest <= n * choice.offer.workers <= most)
    if not nodes:
        return []
    if task.price is None or not task.batches:
        return [Choice(choice.offer, nodes, tuple(map(Batch, sorted(task.batches))))]
    return [
        Choice(_with_needed_memory(choice.offer, task.price, batch / n), (n,), (Batch(batch),))
        for n in nodes
        for batch in task.batches
    ]


def _with_needed_memory(offer: Offer, price: UnitPrice, samples: float) -> Offer:
    """The offer with only the memory that its share of the batch needs, priced by CPU and GB."""
    memory_gb = price.base_gb + price.gb_per_sample * samples
    usd = price.usd_per_cpu_hour * offer.vcpus + price.usd_per_gb_hour * memory_gb
    return replace(offer, memory_gb=memory_gb, usd_per_hour=usd)


def _why_empty(space: Space, task: ScalingTask) -> str:
    fewest, most = task.workers
    counts = sorted({n * choice.offer.workers for choice in space.choices for n in choice.nodes})
    wanted = [workers for workers in counts if fewest <= workers <= most]
    if not wanted:
        return f"workers {fewest}..{most}: none possible; this cloud has {counts[0]} to {counts[-1]} workers of a type"
    batch, workers = task.batches[-1], wanted[0]
    near = max(workers, round(batch / workers) * workers)
    return f"batch {batch} cannot be shared equally by {workers} workers; use {near}, or other workers"
