"""The specification of a training run, from published sizes and datasheets: the model, the GPUs, the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mlcd.catalog.gpus import Gpu, known_gpu
from mlcd.core.configuration import Configuration, Offer
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, PlannedTraining, TrainingPlan, plan_of

CPU = "cpu"
"""The name of a node without GPUs, which counts as one GPU."""
CPU_BANDWIDTH_GB_S = 10.0
"""Memory bandwidth of one vCPU, roughly: probes correct the level."""
BANDWIDTH_GB_S_PER_TFLOPS = 40.0
"""Memory bandwidth of a GPU that is not in the catalog, per fp32 TFLOPS: about that of a T4 or a V100."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The input of the models of step time and memory.

    `global_batch`: sequences of one optimizer step, all ranks together. `trainable`: number of trained parameters.
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
        """Number of machines; the last may be used in part."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def data_parallel(self) -> int:
        """Number of ranks that take different sequences."""
        return max(1, self.gpus // (self.plan.tensor * self.plan.pipeline * self.plan.context))

    @property
    def accumulation(self) -> float:
        """Micro-batches that a rank accumulates in each step."""
        return max(1.0, self.global_batch / (self.data_parallel * self.plan.micro_batch))


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A measured training run, from which priors are learned.

    `source`: who measured it, since the same plan takes other times in other code. `step_s`: seconds of an optimizer
    step; None if it ran out of memory. `allocated_gb`, `reserved_gb`: peak memory of the tensors, and reserved for
    them, in 10^9 bytes; None if unknown.
    """

    model: str
    source: str
    spec: RunSpec
    step_s: float | None
    out_of_memory: bool
    allocated_gb: float | None = None
    reserved_gb: float | None = None


def run_spec_of(configuration: Configuration, training: PlannedTraining) -> RunSpec:
    """The training run of a configuration."""
    plan = plan_of(configuration) or replace(training.fixed, global_batch=training.global_batch)
    return RunSpec(
        training.architecture,
        training.sequence,
        training.global_batch,
        gpu_of(configuration.offer),
        configuration.workers,
        configuration.offer.workers,
        plan,
        trainable_parameters(training.architecture, plan.adapter, training.lora_rank),
    )


@lru_cache(maxsize=1_024)
def gpu_of(offer: Offer) -> Gpu:
    """The GPU of an offer, with the offer's network; a node without GPUs counts as one GPU named 'cpu'."""
    network_gb_s = offer.network_gbps / 8 / offer.workers
    if not offer.accelerators:
        bandwidth, rate = CPU_BANDWIDTH_GB_S * offer.vcpus, offer.tflops
        links = {"pcie_gb_s": bandwidth, "network_gb_s": network_gb_s}
        return Gpu(CPU, offer.memory_gb, bandwidth, rate, tflops_fp32=rate, **links)
    known, rate = known_gpu(offer.accelerator), offer.tflops_per_accelerator
    if known is not None:
        memory_gb = min(known.memory_gb, offer.accelerator_memory_gb or known.memory_gb)  # less: a slice of a GPU
        fp32 = 0.0 if known.has("bf16") else rate  # GPUs with bf16 also have TF32
        return replace(known, memory_gb=memory_gb, network_gb_s=network_gb_s or known.network_gb_s, tflops_fp32=fp32)
    rate = rate or 1.0
    bandwidth = BANDWIDTH_GB_S_PER_TFLOPS * rate
    return Gpu(
        offer.accelerator, offer.accelerator_memory_gb, bandwidth, rate, network_gb_s=network_gb_s or 1.6,
        tflops_fp32=rate,
    )  # fmt: skip


def trainable_parameters(model: Architecture, adapter: Adapter, rank: int) -> float:
    """Number of trained parameters: all, or those of an adapter on every linear layer except the experts'.

    An adapter of rank r beside a layer from n to m numbers has r (n + m) parameters: Hu et al., LoRA, 2021.
    """
    if adapter is Adapter.FULL:
        return model.params_b * 1e9
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * (model.hidden + queries) + 2 * (model.hidden + keys)
    dense = 3 * (model.hidden + model.dense_hidden) * (model.dense_layers / model.layers)
    return rank * model.layers * (attention + dense)


def flops_of_sequence(model: Architecture, sequence: int, adapter: Adapter) -> float:
    """FLOPs forward and backward: 6 a parameter and token, plus attention; with frozen weights 4 (no gradients)."""
    attention = 6.0 * model.full_layers * model.heads * model.head_dim * sequence
    whole = 6.0 * model.active_b * 1e9 + attention
    return sequence * (whole if adapter is Adapter.FULL else whole * 2 / 3)
