"""Scaling: what may change while a job runs, how a configuration says its batch, and gradient noise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.payload import Ask, Evidence, Setting, Work


class LearningRate(StrEnum):
    """How the learning rate follows the batch."""

    NONE = "none"
    LINEAR = "linear"
    SQUARE_ROOT = "sqrt"
    ADASCALE = "adascale"


class Mode(StrEnum):
    """How much of the space is probed: all of it, its ends, or nothing."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Dollars an hour for each CPU and each GB, where a machine's memory is cut to the batch it has to hold.

    Tyagi and Sharma (Scavenger), section V-D. A node that holds b samples needs `base_gb` + b x `gb_per_sample`.
    """

    usd_per_cpu_hour: float
    usd_per_gb_hour: float
    base_gb: float = 1.0
    gb_per_sample: float = 0.0


@dataclass(frozen=True, slots=True)
class ScalingTask(Ask):
    """What may change while the job runs, and how it is found out.

    `batches`: the global batches that may be trained with; none of them where the job keeps its own. `epochs`: what
    reaching the target took an earlier run, at the batch of the hints, if that is known.
    """

    kind: ClassVar[str] = "scale.task"
    may_be_on_trial: ClassVar[bool] = False
    workers: tuple[int, int] = (1, 8)
    batches: tuple[int, ...] = ()
    mode: Mode = Mode.PARTIAL
    learning_rate: LearningRate = LearningRate.NONE
    epochs: float | None = None
    price: UnitPrice | None = None


@dataclass(frozen=True, slots=True)
class Batch(Setting):
    """The global batch that the nodes train with."""

    kind: ClassVar[str] = "scale.batch"
    samples: int

    def words(self, machines: str, nodes: int) -> str:
        """'3 x c5.xlarge, batch 128'."""
        return f"{machines}, batch {self.samples}"

    def suits(self, nodes: int, offer: Offer) -> bool:
        """Whether it divides by the workers."""
        return self.samples % (nodes * offer.workers) == 0


@dataclass(frozen=True, slots=True)
class MeasureNoise(Work):
    """A probe that goes on until the gradient noise is known, too."""

    kind: ClassVar[str] = "scale.measure-noise"


@dataclass(frozen=True, slots=True)
class Noise(Evidence):
    """How much the gradients of single samples differ.

    `scale`: the batch, in samples, at which noise and signal are equal (McCandlish et al. 2018); `rel_error`: one
    standard error of its log. `gamma`: Scavenger's measure of the same, for the workers that it was taken from.
    """

    kind: ClassVar[str] = "scale.noise"
    scale: float
    rel_error: float
    stable: bool = True
    gamma: float | None = None


def scaling_task(job: Job) -> ScalingTask | None:
    """What may change while the job runs; None if nothing may."""
    return job.ask if isinstance(job.ask, ScalingTask) else None


def batch_of(configuration: Configuration) -> int | None:
    """The batch that is trained with there; None where the job keeps its own."""
    return configuration.setting.samples if isinstance(configuration.setting, Batch) else None


def noise_of(measurement: Measurement) -> Noise | None:
    """The gradient noise that was measured, if it was."""
    return measurement.evidence if isinstance(measurement.evidence, Noise) else None
