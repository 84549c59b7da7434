"""One training run that could be, by published facts alone: the model, the GPUs, the plan."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.catalog.gpus import Gpu
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import TrainingPlan


@dataclass(frozen=True, slots=True)
class Facts:
    """What the law of a step and the memory model are computed from.

    `global_batch`: sequences of one optimizer step, all ranks together. `trainable`: parameters that are trained.
    """

    architecture: Architecture
    sequence: int
    global_batch: int
    gpu: Gpu
    gpus: int
    gpus_per_node: int
    plan: TrainingPlan
    trainable: float

    @property
    def nodes(self) -> int:
        """Machines, the last of which may be used in part."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def data_parallel(self) -> int:
        """Ranks that take different sequences."""
        return max(1, self.gpus // (self.plan.tensor * self.plan.pipeline * self.plan.context))

    @property
    def accumulation(self) -> float:
        """Micro-batches that a rank takes one after the other in each step."""
        return max(1.0, self.global_batch / (self.data_parallel * self.plan.micro_batch))


@dataclass(frozen=True, slots=True)
class Seen:
    """A training run that somebody made, which priors are learned from.

    `source`: who measured it: the same plan takes other times by other code. `step_s`: of an optimizer step; None where
    it ran out of memory. Memory in 10^9 bytes, None where nobody says: of the tensors, and what was reserved for them.
    """

    model: str
    source: str
    facts: Facts
    step_s: float | None
    out_of_memory: bool
    allocated_gb: float | None = None
    reserved_gb: float | None = None
