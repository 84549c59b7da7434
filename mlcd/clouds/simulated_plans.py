"""The true speed and memory use of a training plan on the simulated cloud, from textbook formulas.

A search has to find these out, so no constant is shared with the model that a search uses (`planners/train/plans/`).
Each seed has its own efficiencies, and each plan on each GPU deviates from the formulas by a few percent at random.

    step = (m + pp - 1) t + exposed + optimizer      t = compute + tensor exchanges + gathers + launches

Compute and pipeline: Narayanan et al., Megatron-LM, 2021 (equation 3, section 2.2). Exchanges: an all-reduce of V
bytes among n takes 2 V (n - 1) / n / bandwidth (Thakur et al., 2005), a gather half of it. State by sharding:
Rajbhandari et al., ZeRO, 2020. Activations: Korthikanti et al., 2022, table 2, with attention that stores no scores.

Symbols   m   micro-batches of a step on one rank      t    seconds of one of them on a stage
          pp  pipeline stages
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlcd.core.configuration import Configuration
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, PlannedTraining, Precision, Sharding
from mlcd.planners.train.plans.communication import link_gb_s
from mlcd.planners.train.plans.run_spec import RunSpec, run_spec_of

TYPICAL_EFFICIENCY, EFFICIENCY_SPREAD = 0.5, 0.12
"""Share of the datasheet's FLOP rate that large matrix multiplications reach: median over GPU types, spread of log."""
HALF_AT = 2.5e6
"""Size of a multiplication (tokens x width) that reaches half of that share."""
MOVED = 32.0
"""Memory traffic of one layer and pass between multiplications: numbers read and written for each activation."""
LINK_EFFICIENCY = 0.75
OVERLAP = 0.7
"""Share of the computing time that can overlap with gradient and weight communication."""
LAUNCHES_S = 0.00025
"""Kernel launch overhead for each layer and micro-batch, forward and backward; the same on every GPU."""
STRAGGLER = 0.015
RESIDUAL = 0.04
"""Standard deviation of the log of the random residual of a plan on a GPU."""
MULTIPLIED = {
    Precision.FP32: "fp32",
    Precision.FP8: "fp8",
}
RECOMPUTED = {Checkpointing.NONE: 0.0, Checkpointing.SELECTIVE: 0.05, Checkpointing.FULL: 1.0}
"""Share of the forward pass that is recomputed."""
FROZEN_BYTES = {Adapter.LORA: 2.0, Adapter.QLORA: 0.6, Adapter.GPTQ_LORA: 0.6}
UNPACKING = {Adapter.QLORA: 1.3, Adapter.GPTQ_LORA: 1.4}
"""Slowdown of multiplications whose weights have to be dequantised first."""


@dataclass(frozen=True)
class SimulatedPlans:
    """The true performance of training plans, for one seed."""

    seed: int = 0

    def samples_per_s(self, configuration: Configuration, training: PlannedTraining) -> float:
        """The rate without noise."""
        spec = run_spec_of(configuration, training)
        return spec.global_batch / self.step_s(spec)

    def fits(self, configuration: Configuration, training: PlannedTraining) -> bool:
        """Whether the plan fits the GPU's memory."""
        spec = run_spec_of(configuration, training)
        return self.needed_gb(spec) <= spec.gpu.memory_gb

    def step_s(self, spec: RunSpec) -> float:
        """Seconds of one optimizer step."""
        plan, gpu, model = spec.plan, spec.gpu, spec.architecture
        m, ranks, tokens = spec.accumulation, _ranks(spec), plan.micro_batch * spec.sequence / plan.context
        on_gpu = 1 / (plan.tensor * plan.pipeline)
        frozen = plan.adapter is not Adapter.FULL
        passes = (2.0 if frozen else 3.0) + RECOMPUTED[plan.checkpointing]
        width = tokens * model.hidden / plan.tensor
        efficiency = _efficiency(self.seed, gpu.name) * width / (width + HALF_AT)
        rate = 1e12 * gpu.tflops(MULTIPLIED.get(plan.precision, "bf16")) * efficiency
        forward = tokens * _forward_flops_per_token(model, spec.sequence) * on_gpu / rate
        bytes_ = 4.0 if plan.precision is Precision.FP32 else 2.0
        moved = MOVED * bytes_ * tokens * model.hidden / plan.tensor * model.layers / plan.pipeline
        compute = (forward * UNPACKING.get(plan.adapter, 1.0) + moved / (1e9 * gpu.bandwidth_gb_s)) * passes
        link = link_gb_s(spec, spec.gpus)
        gathers = 0.0
        if plan.sharding is Sharding.ZERO3:
            whole = 1e9 * (model.params_b - _elsewhere_b(spec))
            weights = whole * on_gpu * FROZEN_BYTES.get(plan.adapter, bytes_)
            gathered = _all_reduce_s(weights, ranks, link) / 2 * (2 if frozen else 3)
            gathers = max(0.0, gathered - OVERLAP * compute)
        launches = LAUNCHES_S * model.layers / plan.pipeline * (1 + plan.tensor / 16)
        micro = compute + _exchanges_s(spec, tokens * bytes_) + gathers + launches
        own = spec.trainable - (0.0 if frozen else 1e9 * _elsewhere_b(spec))
        gradients = _all_reduce_s(own * on_gpu * bytes_, ranks, link)
        exposed = max(0.0, gradients - OVERLAP * compute * 2 / 3)
        kept = own if plan.sharding is Sharding.NONE else spec.trainable / ranks
        optimizer = kept * on_gpu * 28 / (gpu.bandwidth_gb_s * 1e9)
        wait = 1 + STRAGGLER * math.sqrt(2 * math.log(spec.nodes))
        return float(((m + plan.pipeline - 1) * micro + exposed + optimizer) * wait * self._residual(spec))

    def needed_gb(self, spec: RunSpec) -> float:
        """GB of memory on the GPU that needs the most."""
        plan, whole = spec.plan, spec.architecture.params_b
        on_gpu, ranks, elsewhere = 1 / (plan.tensor * plan.pipeline), _ranks(spec), _elsewhere_b(spec)
        pure, frozen = plan.precision.startswith("pure"), plan.adapter is not Adapter.FULL
        weight, gradient, adam = (2.0, 2.0, 4.0) if pure else (4.0, 4.0, 8.0)
        masters = not pure and plan.precision is not Precision.FP32
        used = FROZEN_BYTES.get(plan.adapter, 2.0 if masters else weight)
        weights = used * (whole / ranks if plan.sharding is Sharding.ZERO3 else whole - elsewhere)
        trained, others = spec.trainable / 1e9, 0.0 if frozen else elsewhere
        state = (gradient + adam + weight * (masters or frozen)) * (
            trained - others if plan.sharding is Sharding.NONE else trained / ranks
        )
        overhead = 1.0 + 0.5 * _share(self.seed, f"overhead {spec.gpu.name}")
        fragments = 1.05 + 0.05 * _share(self.seed, f"fragments {spec.gpu.name}")
        return float((weights + state) * on_gpu + self._activations_gb(spec) * fragments + overhead)

    def _activations_gb(self, spec: RunSpec) -> float:
        plan, model = spec.plan, spec.architecture
        numbers = plan.micro_batch * spec.sequence / plan.context * model.hidden
        layers = model.layers / plan.pipeline
        wide = (model.dense_hidden or model.expert_hidden * max(1, model.experts_per_token)) / (4 * model.hidden)
        layer = numbers * (10 + (8 + 16 * 1.5 * wide) / plan.tensor)
        layer *= 2 if plan.precision is Precision.FP32 else 1
        if plan.checkpointing is Checkpointing.FULL:
            kept = 2 * numbers * layers
        else:
            kept = layer * layers * (0.8 if plan.checkpointing is Checkpointing.SELECTIVE else 1.0)
        kept *= min(plan.pipeline, spec.accumulation)  # micro-batches that the first stage holds at once
        logits = 6 * plan.micro_batch * spec.sequence / plan.context * model.vocab / plan.tensor
        return float(kept + layer + logits) / 1e9

    def _residual(self, spec: RunSpec) -> float:
        name = f"{spec.gpu.name} {spec.gpus_per_node} {spec.plan.words('', 0)}"
        return math.exp(RESIDUAL * _normal(self.seed, name))


@lru_cache(maxsize=256)
def _efficiency(seed: int, gpu: str) -> float:
    return min(0.85, TYPICAL_EFFICIENCY * math.exp(EFFICIENCY_SPREAD * _normal(seed, gpu)))


@lru_cache(maxsize=256)
def _share(seed: int, name: str) -> float:
    """A random number between 0 and 1 that belongs to this seed and name."""
    return float(np.random.default_rng([seed, zlib.crc32(name.encode())]).random())


def _normal(seed: int, name: str) -> float:
    return float(np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal())


@lru_cache(maxsize=64)
def _forward_flops_per_token(model: Architecture, sequence: int) -> float:
    """2 FLOPs for each active parameter, plus attention over the preceding tokens: on average half of the sequence."""
    attention = 2 * model.full_layers * model.heads * model.head_dim * sequence
    return 2e9 * model.active_b + attention


def _ranks(spec: RunSpec) -> int:
    """How many ranks hold the same weights."""
    return spec.data_parallel * spec.plan.context


def _elsewhere_b(spec: RunSpec) -> float:
    """Billions of parameters of the experts that are on other ranks."""
    model = spec.architecture
    idle = model.experts - model.experts_per_token
    experts_b = (model.params_b - model.active_b) * model.experts / idle if idle > 0 else 0.0
    return experts_b * (1 - 1 / spec.plan.expert)


def _exchanges_s(spec: RunSpec, token_bytes: float) -> float:
    """Seconds of exchanging activations, for one micro-batch. `token_bytes`: its tokens x bytes per number."""
    plan, model = spec.plan, spec.architecture
    sent = 4 * model.layers / plan.pipeline * token_bytes * model.hidden
    seconds = _all_reduce_s(sent, plan.tensor, link_gb_s(spec, plan.tensor))
    if plan.context > 1:
        keys = 2 * 2 * model.layers / plan.pipeline * token_bytes * model.kv_heads * model.head_dim
        seconds += _all_reduce_s(keys, plan.context, link_gb_s(spec, plan.tensor * plan.context)) / 2
    if plan.expert > 1:  # a token goes to its experts and comes back, in both passes
        seconds += _all_reduce_s(sent * model.experts_per_token, plan.expert, link_gb_s(spec, plan.expert)) / 2
    return seconds


def _all_reduce_s(size: float, among: int, link_gb_s: float) -> float:
    """Seconds of an all-reduce of `size` bytes."""
    return 2 * size * (among - 1) / among / (1e9 * link_gb_s * LINK_EFFICIENCY)
