"""The terms of one optimizer step: the time of each part of it according to the GPU's datasheet.

They are counted from the sizes of the model: operations of matrix products and attention, bytes read and written,
kernels launched by the host, and bytes exchanged between GPUs. `step_time_law.py` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding
from mlcd.planners.train.plans.communication import link_gb_s, near_and_far
from mlcd.planners.train.plans.memory_parts import feed_forward_width, gated
from mlcd.planners.train.plans.run_spec import RunSpec

USUAL_TFLOPS = 312.0
LESS_USED = {"matmul": 0.15, "attention": 0.4, "exponentials": 0.6}
"""Faster GPUs reach a smaller share of their peak: the share falls by this power of the peak, relative to an A100."""
BYTES = {Precision.FP32: 4.0}
"""Bytes of a number in matrix products; two for other precisions."""
MIXED = (Precision.BF16, Precision.FP16, Precision.FP8)
"""Mixed precision: weights in fp32, matrix products in another precision."""
EAGER_ATTENTION = ("softmax", "eager", "math")
"""Names of attention that writes the scores of all pairs of tokens to memory."""
GROUPED_EXPERTS = ("scattermoe", "megablocks", "grouped", "megatron", "compile")
"""Words in names of kernels that compute all experts at once."""
SELECTIVE = 0.35
"""Share of a forward pass that selective checkpointing recomputes."""


@dataclass(frozen=True)
class StepTerms:
    """The terms of one run, in four groups by name."""

    spec: RunSpec

    @cached_property
    def tokens(self) -> float:
        """Tokens of a micro-batch on a GPU."""
        return self.spec.plan.micro_batch * self.spec.sequence / self.spec.plan.context

    @cached_property
    def recomputed(self) -> float:
        """Forward passes that the backward pass recomputes."""
        kept = {Checkpointing.NONE: 0.0, Checkpointing.SELECTIVE: SELECTIVE, Checkpointing.FULL: 1.0}
        return kept[self.spec.plan.checkpointing]

    @cached_property
    def trained(self) -> float:
        """Share of the parameters that are trained."""
        return min(1.0, self.spec.trainable / (1e9 * self.spec.architecture.params_b))

    @cached_property
    def passes(self) -> float:
        """Passes over the layers in a forward and backward pass, weighted by operations."""
        return 2.0 + self.recomputed + self.trained

    @cached_property
    def number_bytes(self) -> float:
        """Bytes of a number in matrix products."""
        return BYTES.get(self.spec.plan.precision, 2.0)

    @cached_property
    def experts(self) -> float:
        """Parameters of the experts on a GPU."""
        sizes, plan = self.spec.architecture, self.spec.plan
        idle = sizes.experts - sizes.experts_per_token
        every = 1e9 * (sizes.params_b - sizes.active_b) * sizes.experts / idle if idle > 0 else 0.0
        return every / plan.expert / plan.tensor / plan.pipeline

    @cached_property
    def common(self) -> float:
        """Parameters of the layers on a GPU, without experts."""
        sizes, plan = self.spec.architecture, self.spec.plan
        layers = (1e9 * sizes.params_b - embeddings(sizes)) / plan.tensor / plan.pipeline
        return max(0.0, layers - self.experts * plan.expert)

    @cached_property
    def weights(self) -> float:
        """Parameters of the layers on a GPU."""
        return self.common + self.experts

    @cached_property
    def gpu(self) -> dict[str, float]:
        """Seconds of a micro-batch on the GPU."""
        spec, sizes, plan, tokens = self.spec, self.spec.architecture, self.spec.plan, self.tokens
        split = plan.tensor * plan.pipeline
        rate = spec.gpu.tflops("fp8" if plan.precision is Precision.FP8 else _plain(plan.precision))
        usual = spec.gpu.tflops(_plain(plan.precision))
        bandwidth, wide = 1e9 * spec.gpu.bandwidth_gb_s, self.number_bytes
        of_layers = 2 * tokens * (1e9 * sizes.active_b - embeddings(sizes)) / split
        head = 2 * tokens * sizes.vocab * sizes.hidden / plan.tensor
        whole = any(word in plan.attention for word in EAGER_ATTENTION)
        scores = tokens * attended(spec) * sizes.heads * sizes.layers / split
        inner, casts_weights = feed_forward_width(sizes), self._casts and plan.adapter is Adapter.FULL
        moved = 2 * tokens * sizes.layers * wide / plan.pipeline * self.passes
        return {
            "matmul": (self.passes * of_layers + (self.passes - self.recomputed) * head) / _reached("matmul", rate),
            "attention": (3.5 + self.recomputed) * 4 * sizes.head_dim * scores * (1.0 if whole else 0.5)
                         / _reached("attention", usual),
            "exponentials": (2 + self.recomputed) * 256 * scores / _reached("exponentials", spec.gpu.tflops("bf16")),
            "elementwise": moved * (2 * sizes.heads * sizes.head_dim + matrices(sizes) * inner)
                           / plan.tensor / bandwidth,
            "replicated": moved * 4 * sizes.hidden / bandwidth,
            "logits": 12 * tokens * sizes.vocab / plan.tensor / bandwidth,
            "softmax": 4 * (2 + self.recomputed) * scores * wide / bandwidth if whole else 0.0,
            "weights": self.passes * self.weights * wide / bandwidth,
            "cast_activations": self._casts * moved * (4 * sizes.hidden + inner / plan.tensor) / bandwidth,
            "casts": casts_weights * 6 * (2 + self.recomputed) * self.weights / bandwidth,
            "dequantise": (2 + self.recomputed) * 2.5 * self.weights / bandwidth if quantised(spec) else 0.0,
        }  # fmt: skip

    @property
    def _casts(self) -> bool:
        """Whether each operation casts its inputs, as autocast does. Sharded training casts a whole layer beforehand.

        Casting whole layers costs the GPU almost nothing, but the host as much, since it launches kernels for it, too.
        Frozen weights are stored in the precision in which they are used.
        """
        return self._mixed and self.spec.plan.sharding is Sharding.NONE

    @property
    def _mixed(self) -> bool:
        """Whether trained weights are cast in each pass."""
        return self.spec.plan.precision in MIXED and "megatron" not in self.spec.plan.kernels

    @cached_property
    def host(self) -> dict[str, float]:
        """Seconds to launch the kernels of a micro-batch."""
        sizes, plan = self.spec.architecture, self.spec.plan
        layers = 3e-6 * sizes.layers / plan.pipeline
        again = self.recomputed * layers / 3
        one_by_one = sizes.experts > 0 and not any(word in plan.kernels for word in GROUPED_EXPERTS)
        return {
            "layers": layers,
            "gated_layers": layers if matrices(sizes) > 2 else 0.0,
            "again_layers": again,
            "cast_layers": layers + again if self._mixed and plan.adapter is Adapter.FULL else 0.0,
            "adapter_layers": layers + again if plan.adapter is not Adapter.FULL else 0.0,
            "expert_layers": layers + again if sizes.experts else 0.0,
            "expert_kernels": (layers + again) * sizes.experts / max(1, plan.expert) if one_by_one else 0.0,
        }

    @cached_property
    def links(self) -> dict[str, float]:
        """Seconds of communication in a micro-batch for which the next operation waits."""
        spec, sizes, plan = self.spec, self.spec.architecture, self.spec.plan
        width, layers = plan.tensor, sizes.layers / plan.pipeline
        activations = self.tokens * sizes.hidden * self.number_bytes
        exchanges = (4 + 2 * self.recomputed) * layers * (width > 1)
        exchanged = exchanges * 2 * (width - 1) / width * activations
        near, far = near_and_far(spec, exchanged, width, 1)
        near_gathers, far_gathers = near_and_far(spec, self._gathered, self._ranks, width)
        hops = (plan.pipeline > 1) * 2 * activations / width / (1e9 * link_gb_s(spec, spec.gpus))
        keys = 4 * self.tokens * sizes.kv_heads * sizes.head_dim * self.number_bytes * layers / width
        dispatched = 4 * layers * activations * max(1, sizes.experts_per_token) * (plan.expert - 1) / plan.expert
        return {
            "tensor": near,
            "tensor_network": far,
            "tensor_calls": 1e-6 * exchanges,
            "pipeline": hops,
            "gathers": near_gathers,
            "gathers_network": far_gathers,
            "dispatch": dispatched / (1e9 * link_gb_s(spec, plan.expert)),
            "context": keys * (plan.context - 1) / (1e9 * link_gb_s(spec, plan.context * width)),
        }

    @property
    def _ranks(self) -> int:
        """Ranks with the same weights, over which these can be sharded."""
        return self.spec.data_parallel * self.spec.plan.context

    @property
    def _gathered(self) -> float:
        """Bytes of weights that a GPU gathers for both passes, and of gradients that it scatters."""
        plan = self.spec.plan
        if plan.sharding is not Sharding.ZERO3 or self._ranks == 1:
            return 0.0
        stored = 0.55 if quantised(self.spec) else self.number_bytes
        shared = self.common + (self.experts if plan.expert < self._ranks else 0.0)
        return shared * (2 * stored + self.number_bytes * self.trained)

    @cached_property
    def once(self) -> dict[str, float]:
        """Seconds of a step that do not depend on its micro-batches."""
        spec, plan = self.spec, self.spec.plan
        ranks, sharded = self._ranks, plan.sharding is not Sharding.NONE
        trained = spec.trainable / plan.tensor / plan.pipeline
        experts = min(trained, self.experts * plan.expert) if plan.adapter is Adapter.FULL else 0.0
        alike = max(1, ranks // plan.expert)
        near, far = self._reduced(trained - experts, ranks, plan.tensor)
        of_experts = self._reduced(experts / plan.expert, alike, plan.tensor * plan.expert)
        own = (trained - experts) / (ranks if sharded else 1) + experts / plan.expert / (alike if sharded else 1)
        pure = plan.precision in (Precision.PURE_BF16, Precision.PURE_FP16)
        return {
            "gradients": near + of_experts[0],
            "gradients_network": far + of_experts[1],
            "optimizer": own * (14 if pure else 30) / (1e9 * spec.gpu.bandwidth_gb_s),
            "start": 1e-3,
        }

    def _reduced(self, trained: float, ranks: int, stride: int) -> tuple[float, float]:
        """Seconds inside machines and between them of an all-reduce of gradients over so many ranks."""
        whole = self.spec.plan.sharding is not Sharding.ZERO3 and ranks > 1
        return near_and_far(self.spec, 2 * trained * self.number_bytes * whole, ranks, stride)


@cache
def embeddings(sizes: Architecture) -> float:
    """Active parameters outside the transformer layers: input and output embeddings, and positions."""
    attention = 2.0 * sizes.hidden * sizes.head_dim * (sizes.heads + sizes.kv_heads)
    layers = sizes.layers * (attention + matrices(sizes) * sizes.hidden * feed_forward_width(sizes))
    return float(np.clip(1e9 * sizes.active_b - layers, sizes.vocab * sizes.hidden, 0.9e9 * sizes.active_b))


def matrices(sizes: Architecture) -> int:
    """Matrices of a feed-forward layer: two, or three if it has a gate."""
    return 3 if gated(sizes) else 2


def attended(spec: RunSpec) -> float:
    """Tokens that each token attends to, on average over the layers."""
    sizes = spec.architecture
    near = min(spec.sequence, sizes.window) if sizes.window else 0
    full = sizes.full_layers or (0 if sizes.window else sizes.layers)
    return (full * spec.sequence + (sizes.layers - full) * near) / sizes.layers


def quantised(spec: RunSpec) -> bool:
    """Whether frozen weights are stored in four bits."""
    return spec.plan.adapter in (Adapter.QLORA, Adapter.GPTQ_LORA)


def _reached(what: str, tflops: float) -> float:
    """Operations a second of a GPU with this peak, with the share of the peak relative to that of an A100."""
    return float(1e12 * tflops * (USUAL_TFLOPS / tflops) ** LESS_USED[what])


def _plain(precision: Precision) -> str:
    return "fp32" if precision is Precision.FP32 else "bf16"
