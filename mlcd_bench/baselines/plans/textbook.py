"""Step time and memory by published formulas, without fitted constants.

Narayanan et al., 'Efficient Large-Scale Language Model Training on GPU Clusters', SC 2021 (pipeline bubble, tensor
exchanges); Korthikanti et al., 'Reducing Activation Recomputation in Large Transformer Models', 2022 (activations);
Rajbhandari et al., 'ZeRO', SC 2020 (states).

Symbols   s, h, L   sequence, width, layers      m    accumulation: micro-batches of a rank in a step
          p, t      pipeline, tensor             b    micro-batch
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd_bench.plans.problem import PlanProblem

EFFICIENCY = 0.5
"""Share of the peak FLOP/s that well-optimised code reaches."""
PURE = (Precision.PURE_BF16, Precision.PURE_FP16)
BYTES = 2
GIB = 2**30


def textbook(problem: PlanProblem, rng: np.random.Generator) -> Sequence[int]:
    """Plans that fit by the formulas, cheapest first; then the rest by memory. Equals in random order."""
    specs, factor = problem.candidates, problem.factor
    cost = [float(np.log(step_s(each)) + factor[i]) for i, each in enumerate(specs)]
    over = [max(1.0, needed_gib(each) / each.gpu.memory_gb) for each in specs]
    return sorted((int(i) for i in rng.permutation(len(specs))), key=lambda i: (over[i], cost[i]))


def step_s(spec: RunSpec) -> float:
    """Seconds of an optimizer step: arithmetic with its bubble, tensor exchanges, exchange of gradients and weights."""
    plan, model = spec.plan, spec.architecture
    tokens = spec.global_batch * spec.sequence
    forward = 2e9 * model.active_b + 4 * model.layers * model.hidden * spec.sequence
    passes = (2 if spec.plan.adapter is not Adapter.FULL else 3) + (plan.checkpointing is Checkpointing.FULL)
    precision = "fp8" if plan.precision is Precision.FP8 else "bf16"
    rate = spec.gpus * 1e12 * spec.gpu.tflops(precision) * EFFICIENCY
    bubble = 1 + (plan.pipeline - 1) / spec.accumulation
    width = BYTES * tokens / spec.data_parallel * model.hidden  # of one layer's activations, all micro-batches
    exchanges = 8 * width * model.layers / plan.pipeline * (plan.tensor - 1) / plan.tensor
    tensor = exchanges / _link(spec, plan.tensor)
    apart = spec.data_parallel
    share = 1e9 * BYTES * model.params_b / (plan.tensor * plan.pipeline)
    trained = BYTES * spec.trainable / (plan.tensor * plan.pipeline)
    gathered = 2 * spec.accumulation * share if plan.sharding is Sharding.ZERO3 else 0.0
    data = (2 * trained + gathered) * (apart - 1) / apart / _link(spec, spec.gpus)
    return (tokens * passes * forward / rate + tensor) * bubble + data


def _link(spec: RunSpec, gpus: int) -> float:
    """Bytes a second between so many GPUs, within a machine or across machines."""
    return 1e9 * (spec.gpu.link_gb_s(gpus) if gpus <= spec.gpus_per_node else spec.gpu.network_gb_s)


def needed_gib(spec: RunSpec) -> float:
    """Weights, gradients, optimizer and activations of one GPU."""
    plan, model, ranks = spec.plan, spec.architecture, spec.data_parallel
    split = plan.tensor * plan.pipeline
    weight_bytes = 0.5 if plan.adapter in (Adapter.QLORA, Adapter.GPTQ_LORA) else BYTES
    if plan.adapter is Adapter.FULL and plan.precision not in PURE:
        weight_bytes = 4
    each = 2 if plan.precision in PURE else 4
    weights = 1e9 * model.params_b * weight_bytes / split / (ranks if plan.sharding is Sharding.ZERO3 else 1)
    states = 3 * each * spec.trainable / split / (1 if plan.sharding is Sharding.NONE else ranks)
    layer = {Checkpointing.NONE: 34, Checkpointing.SELECTIVE: 34, Checkpointing.FULL: 2}[plan.checkpointing]
    tokens = plan.micro_batch * spec.sequence / plan.context
    activations = tokens * model.hidden * layer * model.layers / plan.tensor
    logits = 6 * tokens * model.vocab / plan.tensor
    return (weights + states + activations + logits) / GIB
