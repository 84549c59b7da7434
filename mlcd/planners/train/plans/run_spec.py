"""One training run that could be, by published spec alone: the model, the GPUs, the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mlcd.catalog.gpus import Gpu, known_gpu
from mlcd.core.configuration import Configuration, Offer
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, PlannedTraining, TrainingPlan, plan_of

CPU = "cpu"
"""The name of a node without GPUs, which counts as one."""
CPU_BANDWIDTH_GB_S = 10.0
"""Of one vCPU, roughly: probes tell the level."""
BANDWIDTH_GB_S_PER_TFLOPS = 40.0
"""Of a GPU that is not in the catalog's table, by its fp32 rate: about that of a T4 or a V100."""


@dataclass(frozen=True, slots=True)
class RunSpec:
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
class MeasuredRun:
    """A training run that somebody made, which priors are learned from.

    `source`: who measured it: the same plan takes other times by other code. `step_s`: of an optimizer step; None where
    it ran out of memory. Memory in 10^9 bytes, None where nobody says: of the tensors, and what was reserved for them.
    """

    model: str
    source: str
    spec: RunSpec
    step_s: float | None
    out_of_memory: bool
    allocated_gb: float | None = None
    reserved_gb: float | None = None


def run_spec_of(configuration: Configuration, asked: PlannedTraining) -> RunSpec:
    """The training run that a configuration would be."""
    plan = plan_of(configuration) or replace(asked.fixed, global_batch=asked.global_batch)
    return RunSpec(
        asked.architecture,
        asked.sequence,
        asked.global_batch,
        gpu_of(configuration.offer),
        configuration.workers,
        configuration.offer.workers,
        plan,
        trainable_parameters(asked.architecture, plan.adapter, asked.lora_rank),
    )


@lru_cache(maxsize=1_024)
def gpu_of(offer: Offer) -> Gpu:
    """The GPU of an offer, with the offer's own network; a node without GPUs counts as one named 'cpu'."""
    network_gb_s = offer.network_gbps / 8 / offer.workers
    if not offer.accelerators:
        bandwidth, rate = CPU_BANDWIDTH_GB_S * offer.vcpus, offer.tflops
        links = {"pcie_gb_s": bandwidth, "network_gb_s": network_gb_s}
        return Gpu(CPU, offer.memory_gb, bandwidth, rate, tflops_fp32=rate, **links)
    known, rate = known_gpu(offer.accelerator), offer.tflops_per_accelerator
    if known is not None:
        memory_gb = min(known.memory_gb, offer.accelerator_memory_gb or known.memory_gb)  # less of it is a part of one
        fp32 = 0.0 if known.has("bf16") else rate  # TF32 came with bf16
        return replace(known, memory_gb=memory_gb, network_gb_s=network_gb_s or known.network_gb_s, tflops_fp32=fp32)
    rate = rate or 1.0
    bandwidth = BANDWIDTH_GB_S_PER_TFLOPS * rate
    return Gpu(
        offer.accelerator, offer.accelerator_memory_gb, bandwidth, rate, network_gb_s=network_gb_s or 1.6,
        tflops_fp32=rate,
    )  # fmt: skip


def trainable_parameters(model: Architecture, adapter: Adapter, rank: int) -> float:
    """All of them; or those of an adapter on every linear layer of the blocks but the experts'.

    An adapter of rank r beside a layer from n to m numbers has r (n + m) parameters: Hu et al., LoRA, 2021.
    """
    if adapter is Adapter.FULL:
        return model.params_b * 1e9
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (model.hidden + queries) + 2 * (model.hidden + keys)
    dense = 3 * (model.hidden + model.dense_hidden) * (model.dense_layers / model.layers)
    return rank * model.layers * (attention + dense)


def flops_of_sequence(model: Architecture, sequence: int, adapter: Adapter) -> float:
    """Forward and backward: 6 for each parameter and token, and attention; frozen weights have no gradient, so 4."""
    attention = 6.0 * model.full_layers * model.heads * model.head_dim * sequence
    whole = 6.0 * model.active_b * 1e9 + attention
    return sequence * (whole if adapter is Adapter.FULL else whole * 2 / 3)
