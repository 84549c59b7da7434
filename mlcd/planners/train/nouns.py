"""Types of training a language model by a plan: the plan, its knobs, and the task with its model."""

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
    """What is sharded over data-parallel ranks: nothing; gradients and optimizer; or the weights, too (FSDP)."""

    NONE = "none"
    ZERO2 = "zero2"
    ZERO3 = "zero3"


class Checkpointing(StrEnum):
    """Which activations are recomputed in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Adapter(StrEnum):
    """What is trained: all weights, or a small adapter beside frozen weights, which may be stored in four bits."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    GPTQ_LORA = "gptq_lora"


class Precision(StrEnum):
    """Precision of matrix products. Weights, gradients and Adam's moments are kept in fp32 unless it says pure."""

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
"""Fields of a plan whose values are words."""


@dataclass(frozen=True, slots=True)
class TrainingPlan(Setting):
    """How one training step is laid out over the GPUs. Data parallelism and accumulation follow from the machines.

    `micro_batch`: sequences that a data-parallel rank takes at once. `context`, `expert`: GPUs that share a sequence,
    and the experts. `attention`, `kernels`: which implementation, if the script says so. `global_batch`: sequences of a
    step on all ranks, which they share equally; 0 if not given. `least_ranks`: fewest data-parallel x context ranks;
    2 for a sharded plan if the same plan without sharding is in the space, because on one rank both are the same.
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
        """The plan with other values of some fields; words may be plain strings."""
        changes = {name: WORDS.get(name, type(value))(value) for name, value in values.items()}
        return replace(self, **changes)  # type: ignore[arg-type]

    def words(self, machines: str, nodes: int) -> str:
        """'2 x p4d.24xlarge, tp 4, pp 2, micro-batch 8, zero3': the micro-batch, and every field not at its default."""
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
        """Whether the plan fits these nodes, with the global batch shared equally."""
        ranks = data_parallel(self, nodes, offer)
        if ranks == 0 or ranks * self.context < self.least_ranks or (ranks * self.context) % self.expert:
            return False
        if offer.workers % self.tensor and self.tensor % offer.workers:
            return False  # some tensor groups would lie within a node and others across two
        return self.global_batch % (ranks * self.micro_batch) == 0


@dataclass(frozen=True, slots=True)
class PlanKnob:
    """One field of a plan that the script accepts, its values, and the variable or argument that passes it.

    `told`: the script's own word for each value; empty if it uses ours.
    """

    field: str
    values: tuple[str | int, ...]
    env: str = ""
    argument: str = ""
    told: tuple[str, ...] = ()

    def word(self, value: str | int) -> str:
        """The script's word for a value."""
        return self.told[self.values.index(value)] if self.told else str(value)


@dataclass(frozen=True)
class PlannedTraining(Ask):
    """Train a language model by a plan that MLCD chooses.

    `sequence`: tokens of a sequence; a sample of the job's work is one sequence. `global_batch`: sequences of one step,
    the same on any machines. `knobs`: fields of the plan that may vary; the others are as in `fixed`. `lora_rank`: of
    adapters. `across_nodes`: tensor parallelism may span nodes.
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
        """Whether model, sequence length and adapter rank are the same, whatever plans are allowed."""
        mine = self.architecture, self.sequence, self.lora_rank
        return isinstance(other, PlannedTraining) and mine == (other.architecture, other.sequence, other.lora_rank)


@runtime_checkable
class TrainsByPlan(Protocol):
    """The ask of another planner (`mlcd scale`) whose job trains by a plan."""

    planned: PlannedTraining | None


def planned_training(job: Job) -> PlannedTraining | None:
    """The job's training task by plan; None if it has no plan."""
    if isinstance(job.ask, TrainsByPlan):
        return job.ask.planned
    return job.ask if isinstance(job.ask, PlannedTraining) else None


def plan_of(configuration: Configuration) -> TrainingPlan | None:
    """The plan of a configuration; None if its job has no plans."""
    return configuration.setting if isinstance(configuration.setting, TrainingPlan) else None


def data_parallel(plan: TrainingPlan, nodes: int, offer: Offer) -> int:
    """How many ranks take different sequences; 0 where the plan does not divide the GPUs."""
    gpus, together = nodes * offer.workers, plan.tensor * plan.pipeline * plan.context
    return gpus // together if gpus % together == 0 else 0


def accumulation(plan: TrainingPlan, nodes: int, offer: Offer) -> int:
    """How many micro-batches a rank accumulates in each step, so that the global batch stays the same."""
    ranks = data_parallel(plan, nodes, offer)
    return plan.global_batch // (ranks * plan.micro_batch) if ranks else 0
