"""How fast a language model trains by a plan on the simulated cloud, and whether it fits: textbook formulas.

This is what a search has to find out, so it shares no constant with what a search believes (`planners/train/plans/`):
each seed has efficiencies of its own, and each plan on each GPU is off by a few percent that no formula explains.

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
"""Share of the datasheet's rate that large multiplications keep, and by how much its log differs between types."""
HALF_AT = 2.5e6
"""Tokens times width of a multiplication at which half of that is reached."""
MOVED = 32.0
"""Numbers that a pass of a layer reads and writes for each of its own, between multiplications."""
LINK_EFFICIENCY = 0.75
OVERLAP = 0.7
"""Share of the computing under which gradients and gathers can hide."""
LAUNCHES_S = 0.00025
"""For each layer and micro-batch, forward and backward: time that no GPU makes shorter."""
STRAGGLER = 0.015
ODD = 0.04
"""Standard deviation of the log of what no formula explains of a plan on a GPU."""
MULTIPLIED = {
    Precision.FP32: "fp32",
    Precision.FP8: "fp8",
}
RECOMPUTED = {Checkpointing.NONE: 0.0, Checkpointing.SELECTIVE: 0.05, Checkpointing.FULL: 1.0}
"""Forward passes that are done again."""
FROZEN_BYTES = {Adapter.LORA: 2.0, Adapter.QLORA: 0.6, Adapter.GPTQ_LORA: 0.6}
UNPACKING = {Adapter.QLORA: 1.3, Adapter.GPTQ_LORA: 1.4}
"""How much longer multiplications take whose weights are unpacked first."""


@dataclass(frozen=True)
class SimulatedPlans:
    """What would be measured, with one seed."""

    seed: int = 0

    def samples_per_s(self, configuration: Configuration, asked: PlannedTraining) -> float:
        """The rate without noise."""
        spec = run_spec_of(configuration, asked)
        return spec.global_batch / self.step_s(spec)

    def fits(self, configuration: Configuration, asked: PlannedTraining) -> bool:
        """Whether nothing runs out of memory."""
        spec = run_spec_of(configuration, asked)
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
        return float(((m + plan.pipeline - 1) * micro + exposed + optimizer) * wait * self._odd(spec))

    def needed_gb(self, spec: RunSpec) -> float:
        """GB on the GPU that needs the most."""
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

    def _odd(self, spec: RunSpec) -> float:
        name = f"{spec.gpu.name} {spec.gpus_per_node} {spec.plan.words('', 0)}"
        return math.exp(ODD * _normal(self.seed, name))


@lru_cache(maxsize=256)
def _efficiency(seed: int, gpu: str) -> float:
    return min(0.85, TYPICAL_EFFICIENCY * math.exp(EFFICIENCY_SPREAD * _normal(seed, gpu)))


@lru_cache(maxsize=256)
def _share(seed: int, name: str) -> float:
    """Between 0 and 1."""
    return float(np.random.default_rng([seed, zlib.crc32(name.encode())]).random())


def _normal(seed: int, name: str) -> float:
    return float(np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal())


@lru_cache(maxsize=64)
def _forward_flops_per_token(model: Architecture, sequence: int) -> float:
    """Two for each parameter that a token passes through, and the scores of those before it, half of all."""
    attention = 2 * model.full_layers * model.heads * model.head_dim * sequence
    return 2e9 * model.active_b + attention


def _ranks(spec: RunSpec) -> int:
    """Those that have the same weights."""
    return spec.data_parallel * spec.plan.context


def _elsewhere_b(spec: RunSpec) -> float:
    """Billions of parameters of experts that other ranks have."""
    model = spec.architecture
    idle = model.experts - model.experts_per_token
    experts_b = (model.params_b - model.active_b) * model.experts / idle if idle > 0 else 0.0
    return experts_b * (1 - 1 / spec.plan.expert)


def _exchanges_s(spec: RunSpec, token_bytes: float) -> float:
    """Of activations, for a micro-batch of so many bytes for each number of a token."""
    plan, model = spec.plan, spec.architecture
    sent = 4 * model.layers / plan.pipeline * token_bytes * model.hidden
    found = _all_reduce_s(sent, plan.tensor, link_gb_s(spec, plan.tensor))
    if plan.context > 1:
        keys = 2 * 2 * model.layers / plan.pipeline * token_bytes * model.kv_heads * model.head_dim
        found += _all_reduce_s(keys, plan.context, link_gb_s(spec, plan.tensor * plan.context)) / 2
    if plan.expert > 1:  # a token goes to its experts and comes back, in both passes
        found += _all_reduce_s(sent * model.experts_per_token, plan.expert, link_gb_s(spec, plan.expert)) / 2
    return found


def _all_reduce_s(size: float, among: int, link_gb_s: float) -> float:
    """Seconds of exchanging so many bytes."""
    return 2 * size * (among - 1) / among / (1e9 * link_gb_s * LINK_EFFICIENCY)
