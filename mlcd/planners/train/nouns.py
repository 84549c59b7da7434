"""Training a language model by a plan: what the job says of the model, and what may vary beside its machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.payload import Ask, Setting
from mlcd.planners.modeling.architecture import Architecture


class Sharding(StrEnum):
    """What the data-parallel ranks keep a part of: nothing; gradients and optimizer; the weights, too (FSDP)."""

    NONE = "none"
    ZERO2 = "zero2"
    ZERO3 = "zero3"


class Checkpointing(StrEnum):
    """Which activations are computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Adapter(StrEnum):
    """What is trained: all weights, or a small adapter beside them, which may be stored in four bits."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    GPTQ_LORA = "gptq_lora"


class Precision(StrEnum):
    """What is multiplied, and what weights, gradients and Adam are kept in: fp32 unless it says pure."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    PURE_BF16 = "pure-bf16"
    PURE_FP16 = "pure-fp16"


@dataclass(frozen=True, slots=True)
class TrainingPlan(Setting):
    """How one training step is laid out over the GPUs. Data parallelism and accumulation follow from the machines.

    `micro_batch`: sequences that a data-parallel rank takes at once. `context`, `expert`: GPUs that share a sequence,
    and the experts. `attention`, `kernels`: by which code, where the script says so.
    """

    kind: ClassVar[str] = "train.plan"
    tensor: int = 1
    pipeline: int = 1
    micro_batch: int = 1
    sharding: Sharding = Sharding.NONE
    checkpointing: Checkpointing = Checkpointing.NONE
    adapter: Adapter = Adapter.FULL
    precision: Precision = Precision.BF16
    context: int = 1
    expert: int = 1
    attention: str = "flash"
    kernels: str = ""


@dataclass(frozen=True, slots=True)
class PlanKnob:
    """One field of a plan that the script accepts, its values, and how it is told: a variable or an argument."""

    field: str
    values: tuple[str | int, ...]
    env: str = ""
    argument: str = ""


@dataclass(frozen=True)
class PlannedTraining(Ask):
    """A language model to be trained by a plan.

    `sequence`: tokens of one; a sample of the job's work is one sequence. `global_batch`: sequences of one step, which
    stays as it is on any machines. `knobs`: what of the plan may vary; the rest is `fixed`. `lora_rank`: of adapters.
    """

    kind: ClassVar[str] = "train.planned"
    architecture: Architecture
    sequence: int
    global_batch: int
    knobs: tuple[PlanKnob, ...] = ()
    fixed: TrainingPlan = field(default_factory=TrainingPlan)
    lora_rank: int = 16


def planned_training(job: Job) -> PlannedTraining | None:
    """What the job says of its language model; None if it says nothing."""
    return job.ask if isinstance(job.ask, PlannedTraining) else None


def plan_of(configuration: Configuration) -> TrainingPlan | None:
    """The plan of a configuration, where its job has plans."""
    return configuration.setting if isinstance(configuration.setting, TrainingPlan) else None


def data_parallel(plan: TrainingPlan, nodes: int, offer: Offer) -> int:
    """How many ranks take different sequences; 0 where the plan does not divide the GPUs."""
    gpus, together = nodes * offer.workers, plan.tensor * plan.pipeline * plan.context
    return gpus // together if gpus % together == 0 else 0
