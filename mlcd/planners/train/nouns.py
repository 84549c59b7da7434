"""Training a language model by a plan: what the job says of the model, and what may vary beside its machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable

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


WORDS: Mapping[str, type[StrEnum]] = {
    "sharding": Sharding,
    "checkpointing": Checkpointing,
    "adapter": Adapter,
    "precision": Precision,
}
"""Fields of a plan that are words."""


@dataclass(frozen=True, slots=True)
class TrainingPlan(Setting):
    """How one training step is laid out over the GPUs. Data parallelism and accumulation follow from the machines.

    `micro_batch`: sequences that a data-parallel rank takes at once. `context`, `expert`: GPUs that share a sequence,
    and the experts. `attention`, `kernels`: by which code, where the script says so. `global_batch`: sequences of a
    step on all ranks, which they have to share equally; 0 where nobody says. `least_ranks`: fewest that share the
    weights, data-parallel or with parts of a sequence: 2 for a plan that shards, where another does without.
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
    global_batch: int = 0
    least_ranks: int = 1

    def having(self, **values: str | int) -> TrainingPlan:
        """The plan with other values of some fields; words may be plain."""
        changes = {name: WORDS.get(name, type(value))(value) for name, value in values.items()}
        return replace(self, **changes)  # type: ignore[arg-type]

    def words(self, machines: str, nodes: int) -> str:
        """'2 x p4d.24xlarge, tp 4, pp 2, micro-batch 8, zero3': what is not usual, and the micro-batch."""
        counts = {"tp": self.tensor, "pp": self.pipeline, "cp": self.context, "ep": self.expert}
        parts = [f"{name} {count}" for name, count in counts.items() if count > 1]
        parts.append(f"micro-batch {self.micro_batch}")
        for value, usual in ((self.sharding, Sharding.NONE), (self.adapter, Adapter.FULL)):
            parts += [str(value)] if value is not usual else []
        if self.checkpointing is not Checkpointing.NONE:
            parts.append(f"{self.checkpointing} checkpointing")
        parts += [str(self.precision)] if self.precision is not Precision.BF16 else []
        parts += [f"{self.attention} attention"] if self.attention != "flash" else []
        parts += [f"{self.kernels} kernels"] if self.kernels else []
        return ", ".join((machines, *parts))

    def suits(self, nodes: int, offer: Offer) -> bool:
        """Whether these GPUs can be laid out so, with the global batch shared equally."""
        ranks = data_parallel(self, nodes, offer)
        if ranks == 0 or ranks * self.context < self.least_ranks or (ranks * self.context) % self.expert:
            return False
        if offer.workers % self.tensor and self.tensor % offer.workers:
            return False  # some groups would be within a node and some across two
        return self.global_batch % (ranks * self.micro_batch) == 0


@dataclass(frozen=True, slots=True)
class PlanKnob:
    """One field of a plan that the script accepts, its values, and how it is told: a variable or an argument.

    `told`: what each value is called there; nothing where it is called as here.
    """

    field: str
    values: tuple[str | int, ...]
    env: str = ""
    argument: str = ""
    told: tuple[str, ...] = ()

    def word(self, value: str | int) -> str:
        """What the script is told of a value."""
        return self.told[self.values.index(value)] if self.told else str(value)


@dataclass(frozen=True)
class PlannedTraining(Ask):
    """A language model to be trained by a plan.

    `sequence`: tokens of one; a sample of the job's work is one sequence. `global_batch`: sequences of one step, which
    stays as it is on any machines. `knobs`: what of the plan may vary; the rest is `fixed`. `lora_rank`: of adapters.
    `across_nodes`: tensor parallelism may reach beyond a node.
    """

    kind: ClassVar[str] = "train.planned"
    architecture: Architecture
    sequence: int
    global_batch: int
    knobs: tuple[PlanKnob, ...] = ()
    fixed: TrainingPlan = field(default_factory=TrainingPlan)
    lora_rank: int = 16
    across_nodes: bool = False

    def same_work(self, other: Ask) -> bool:
        """Of one model, with the same sequences and adapters; which plans are allowed does not matter."""
        mine = self.architecture, self.sequence, self.lora_rank
        return isinstance(other, PlannedTraining) and mine == (other.architecture, other.sequence, other.lora_rank)


@runtime_checkable
class TrainsByPlan(Protocol):
    """What is asked of another planner, of a job that trains by a plan."""

    planned: PlannedTraining | None


def planned_training(job: Job) -> PlannedTraining | None:
    """What the job says of its language model; None if it says nothing."""
    if isinstance(job.ask, TrainsByPlan):
        return job.ask.planned
    return job.ask if isinstance(job.ask, PlannedTraining) else None


def plan_of(configuration: Configuration) -> TrainingPlan | None:
    """The plan of a configuration, where its job has plans."""
    return configuration.setting if isinstance(configuration.setting, TrainingPlan) else None


def data_parallel(plan: TrainingPlan, nodes: int, offer: Offer) -> int:
    """How many ranks take different sequences; 0 where the plan does not divide the GPUs."""
    gpus, together = nodes * offer.workers, plan.tensor * plan.pipeline * plan.context
    return gpus // together if gpus % together == 0 else 0


def accumulation(plan: TrainingPlan, nodes: int, offer: Offer) -> int:
    """How many micro-batches a rank takes one after the other in each step, so that the global batch stays."""
    ranks = data_parallel(plan, nodes, offer)
    return plan.global_batch // (ranks * plan.micro_batch) if ranks else 0
