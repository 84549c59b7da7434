"""A law for one optimizer step of training a transformer: a sum of terms, each a time that a datasheet would tell.

    step  = a (1 + bubble (p - 1) / a) micro + once
    micro = (gpu^4 + host^4)^(1/4) + links          the host starts kernels while the GPU works: the slower one counts

Symbols   a   micro-batches that a rank takes one after the other      p, t   pipeline and tensor parallelism
          T   tokens of a micro-batch in one rank                      d      data-parallel ranks

Every part is sum_j c_j x_j with x_j >= 0 from the facts alone and c_j > 0: how far programs are from the textbook.
A forward pass is one pass over the layers, a backward pass two (of the inputs and of the weights: the latter is spared
where an adapter is trained), and activations that were not kept are computed by one more.

Narayanan et al., 'Efficient large-scale language model training on GPU clusters using Megatron-LM', SC 2021;
Rajbhandari et al., 'ZeRO', SC 2020; Williams et al., 'Roofline', CACM 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding
from mlcd.planners.train.plans.facts import Facts
from mlcd.planners.train.plans.links import link_gb_s, near_and_far
from mlcd.planners.train.plans.memory_parts import feed_forward_width, gated

GPU = {
    "matmul": 1.3, "attention": 2.0, "exponentials": 0.5, "elementwise": 2.5, "replicated": 1.5, "logits": 1.0,
    "softmax": 1.0, "weights": 1.0, "casts": 1.0, "cast_activations": 1.0, "dequantise": 2.0,
}  # fmt: skip
"""What the GPU computes and moves in its memory for a micro-batch, and what a coefficient is taken for beforehand."""
HOST = {
    "layers": 500.0, "gated_layers": 200.0, "again_layers": 2000.0, "cast_layers": 200.0, "adapter_layers": 100.0,
    "expert_layers": 600.0, "expert_kernels": 100.0,
}  # fmt: skip
"""What the host takes to start it all: microseconds a layer and pass; `expert_kernels`: of each expert."""
LINKS = {
    "tensor": 1.0, "tensor_network": 0.6, "tensor_calls": 20.0, "pipeline": 0.8, "gathers": 1.5, "gathers_network": 0.4,
    "dispatch": 4.0, "context": 1.0,
}  # fmt: skip
"""What GPUs exchange for a micro-batch. `tensor_calls`: microseconds for each exchange."""
ONCE = {"gradients": 1.0, "gradients_network": 0.8, "optimizer": 1.3, "start": 5.0}
"""What each step takes once. `start`: milliseconds."""
BUBBLE = {"bubble": 1.0}
ATTENTION = ("attention", "exponentials")
TERMS = {**GPU, **HOST, **LINKS, **ONCE, **BUBBLE}
SURE = {"matmul": 0.15, "attention": 0.3, "bubble": 0.2}
UNSURE = 0.6
"""How far, in the log, a coefficient may be from what it is taken for."""
PARTS = {
    "compute": ("matmul",),
    "attention": ATTENTION,
    "memory": (*(name for name in GPU if name not in ("matmul", *ATTENTION)), "optimizer"),
    "host": (*HOST, "start"),
    "links": (*LINKS, "gradients", "gradients_network"),
    "bubble": ("bubble",),
}
"""Terms that err together."""
USUAL_TFLOPS = 312.0
LESS_USED = {"matmul": 0.15, "attention": 0.4, "exponentials": 0.6}
"""The faster a GPU multiplies, the less of that is reached: by this power of its rate, from an A100's."""
SHARPNESS = 4.0
"""Of the change from waiting for the GPU to waiting for the host."""
BYTES = {Precision.FP32: 4.0}
"""Of a number that is multiplied; two where nothing else is said."""
MIXED = (Precision.BF16, Precision.FP16, Precision.FP8)
"""Precisions that keep weights in fp32 and multiply in another."""
EAGER_ATTENTION = ("softmax", "eager", "math")
"""Words for an attention that writes the scores of all pairs of tokens to memory."""
GROUPED_EXPERTS = ("scattermoe", "megablocks", "grouped", "megatron", "compile")
"""Words for kernels that compute all experts at once."""
SELECTIVE = 0.35
"""Of a forward pass, where only a part of the activations is computed again."""


@dataclass(frozen=True)
class Terms:
    """The terms of many runs, a row each, in the order of `TERMS`."""

    values: Floats
    accumulation: Floats
    stages: Floats

    def log_step(self, coefficients: Floats) -> Floats:
        """By the law."""
        return np.asarray(np.log(self._sum(coefficients)[0]))

    def shares(self, coefficients: Floats) -> Floats:
        """By how much of itself the log of the step moves with the log of each coefficient."""
        step, micro, gpu, host = self._sum(coefficients)
        times = self.values * coefficients
        both = (gpu**SHARPNESS + host**SHARPNESS) ** (1 / SHARPNESS)
        of_gpu, of_host = (gpu / both) ** (SHARPNESS - 1), (host / both) ** (SHARPNESS - 1)
        weight = np.ones_like(times)
        weight[:, _AT["GPU"]] = of_gpu[:, None]
        weight[:, _AT["HOST"]] = of_host[:, None]
        repeated = self.accumulation * self._bubble(coefficients)
        weight[:, : _AT["ONCE"].start] *= repeated[:, None]
        shares = times * weight
        shares[:, -1] = micro * coefficients[-1] * (self.stages - 1)
        return np.asarray(shares / step[:, None])

    def _bubble(self, coefficients: Floats) -> Floats:
        """By how much longer a step is for the GPUs that wait at its begin and end."""
        return np.asarray(1 + coefficients[-1] * (self.stages - 1) / self.accumulation)

    def _sum(self, coefficients: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        times = self.values * coefficients
        gpu, host, links, once = (times[:, _AT[part]].sum(axis=1) for part in ("GPU", "HOST", "LINKS", "ONCE"))
        micro = (gpu**SHARPNESS + host**SHARPNESS) ** (1 / SHARPNESS) + links
        step: Floats = self.accumulation * self._bubble(coefficients) * micro + once
        return step, micro, gpu, host


def _slices() -> dict[str, slice]:
    found, start = {}, 0
    for name, part in {"GPU": GPU, "HOST": HOST, "LINKS": LINKS, "ONCE": ONCE}.items():
        found[name] = slice(start, start + len(part))
        start += len(part)
    return found


_AT = _slices()


def terms_of(runs: Sequence[Facts]) -> Terms:
    """The terms of runs."""
    rows = [_Step(facts) for facts in runs]
    values = [[{**row.gpu, **row.host, **row.links, **row.once}[name] for name in (*GPU, *HOST, *LINKS, *ONCE)]
              for row in rows]  # fmt: skip
    table = np.array(values, dtype=float).reshape(len(rows), -1)
    return Terms(
        np.column_stack([table, np.zeros(len(rows))]),
        np.array([facts.accumulation for facts in runs], dtype=float),
        np.array([float(facts.plan.pipeline) for facts in runs]),
    )


@dataclass(frozen=True)
class _Step:
    """The terms of one run."""

    facts: Facts

    @cached_property
    def tokens(self) -> float:
        """T."""
        return self.facts.plan.micro_batch * self.facts.sequence / self.facts.plan.context

    @cached_property
    def again(self) -> float:
        """Forward passes that the backward pass repeats."""
        kept = {Checkpointing.NONE: 0.0, Checkpointing.SELECTIVE: SELECTIVE, Checkpointing.FULL: 1.0}
        return kept[self.facts.plan.checkpointing]

    @cached_property
    def passes(self) -> float:
        """Over the layers, forward and backward, by operations."""
        return 2.0 + self.again + min(1.0, self.facts.trainable / (1e9 * self.facts.architecture.params_b))

    @cached_property
    def number_bytes(self) -> float:
        """Of a number that is multiplied."""
        return BYTES.get(self.facts.plan.precision, 2.0)

    @cached_property
    def weights(self) -> float:
        """Parameters of the layers of a GPU, all experts that it has included."""
        facts, sizes = self.facts, self.facts.architecture
        layers = 1e9 * sizes.params_b - embeddings(sizes)
        experts = 1e9 * (sizes.params_b - sizes.active_b) / max(1, facts.plan.expert)
        return (layers - 1e9 * (sizes.params_b - sizes.active_b) + experts) / facts.plan.tensor / facts.plan.pipeline

    @cached_property
    def gpu(self) -> dict[str, float]:
        """Seconds of a micro-batch on the GPU."""
        facts, sizes, plan, tokens = self.facts, self.facts.architecture, self.facts.plan, self.tokens
        split = plan.tensor * plan.pipeline
        rate = facts.gpu.tflops("fp8" if plan.precision is Precision.FP8 else _plain(plan.precision))
        usual = facts.gpu.tflops(_plain(plan.precision))
        bandwidth, wide = 1e9 * facts.gpu.bandwidth_gb_s, self.number_bytes
        of_layers = 2 * tokens * (1e9 * sizes.active_b - embeddings(sizes)) / split
        head = 2 * tokens * sizes.vocab * sizes.hidden / plan.tensor
        whole = any(word in plan.attention for word in EAGER_ATTENTION)
        scores = tokens * attended(facts) * sizes.heads * sizes.layers / split
        inner = feed_forward_width(sizes)
        moved = 2 * tokens * sizes.layers * wide / plan.pipeline * self.passes
        return {
            "matmul": (self.passes * of_layers + (self.passes - self.again) * head) / _reached("matmul", rate),
            "attention": (3.5 + self.again) * 4 * sizes.head_dim * scores * (1.0 if whole else 0.5)
                         / _reached("attention", usual),
            "exponentials": (2 + self.again) * 256 * scores / _reached("exponentials", facts.gpu.tflops("bf16")),
            "elementwise": moved * (2 * sizes.heads * sizes.head_dim + matrices(sizes) * inner)
                           / plan.tensor / bandwidth,
            "replicated": moved * 4 * sizes.hidden / bandwidth,
            "logits": 12 * tokens * sizes.vocab / plan.tensor / bandwidth,
            "softmax": 4 * (2 + self.again) * scores * wide / bandwidth if whole else 0.0,
            "weights": self.passes * self.weights * wide / bandwidth,
            "cast_activations": self._casts * moved * (4 * sizes.hidden + inner / plan.tensor) / bandwidth,
            "casts": self._casts * 6 * (2 + self.again) * self.weights / bandwidth,
            "dequantise": (2 + self.again) * 2.5 * self.weights / bandwidth if quantised(facts) else 0.0,
        }  # fmt: skip

    @property
    def _casts(self) -> bool:
        """Whether each pass casts the weights anew, as autocast does; sharded ones are cast as they are gathered."""
        plan = self.facts.plan
        return plan.precision in MIXED and plan.sharding is not Sharding.ZERO3 and "megatron" not in plan.kernels

    @cached_property
    def host(self) -> dict[str, float]:
        """Seconds that it takes to start the kernels of a micro-batch."""
        sizes, plan = self.facts.architecture, self.facts.plan
        layers = 3e-6 * sizes.layers / plan.pipeline
        again = self.again * layers / 3
        one_by_one = sizes.experts > 0 and not any(word in plan.kernels for word in GROUPED_EXPERTS)
        return {
            "layers": layers,
            "gated_layers": layers if matrices(sizes) > 2 else 0.0,
            "again_layers": again,
            "cast_layers": layers + again if self._casts else 0.0,
            "adapter_layers": layers + again if plan.adapter is not Adapter.FULL else 0.0,
            "expert_layers": layers + again if sizes.experts else 0.0,
            "expert_kernels": (layers + again) * sizes.experts / max(1, plan.expert) if one_by_one else 0.0,
        }

    @cached_property
    def links(self) -> dict[str, float]:
        """Seconds that GPUs exchange in a micro-batch what the next operation waits for."""
        facts, sizes, plan = self.facts, self.facts.architecture, self.facts.plan
        activations, width = self.tokens * sizes.hidden * self.number_bytes, plan.tensor
        layers = sizes.layers / plan.pipeline
        exchanges = (4 + 2 * self.again) * layers * (width > 1)
        exchanged = exchanges * 2 * (width - 1) / width * activations
        near, far = near_and_far(facts, exchanged, width, 1)
        gathered = self._gathered
        near_gathers, far_gathers = near_and_far(facts, gathered, facts.data_parallel, width * plan.context)
        hops = (plan.pipeline > 1) * 2 * activations / width / (1e9 * link_gb_s(facts, facts.gpus))
        keys = 4 * self.tokens * sizes.kv_heads * sizes.head_dim * self.number_bytes * layers
        dispatched = 4 * layers * activations * max(1, sizes.experts_per_token) * (plan.expert - 1) / plan.expert
        return {
            "tensor": near,
            "tensor_network": far,
            "tensor_calls": 1e-6 * exchanges,
            "pipeline": hops,
            "gathers": near_gathers,
            "gathers_network": far_gathers,
            "dispatch": dispatched / (1e9 * link_gb_s(facts, plan.expert)),
            "context": keys * (plan.context - 1) / (1e9 * link_gb_s(facts, plan.context * width)),
        }

    @property
    def _gathered(self) -> float:
        """Bytes of weights that a GPU gathers for both passes, and of gradients that it gives away."""
        facts, plan = self.facts, self.facts.plan
        if plan.sharding is not Sharding.ZERO3 or facts.data_parallel == 1:
            return 0.0
        stored = 0.55 if quantised(facts) else self.number_bytes
        return self.weights * (2 * stored + self.number_bytes * min(1.0, self._trained_share))

    @property
    def _trained_share(self) -> float:
        return self.facts.trainable / (1e9 * self.facts.architecture.params_b)

    @cached_property
    def once(self) -> dict[str, float]:
        """Seconds of a step that do not depend on its micro-batches."""
        facts, plan = self.facts, self.facts.plan
        trained = facts.trainable / plan.tensor / plan.pipeline
        reduced = 0.0 if plan.sharding is Sharding.ZERO3 else 2 * trained * self.number_bytes
        ranks = facts.data_parallel * plan.context
        near, far = near_and_far(facts, reduced * (ranks > 1), ranks, plan.tensor)
        own = trained / (1 if plan.sharding is Sharding.NONE else ranks)
        pure = plan.precision in (Precision.PURE_BF16, Precision.PURE_FP16)
        return {
            "gradients": near,
            "gradients_network": far,
            "optimizer": own * (14 if pure else 30) / (1e9 * facts.gpu.bandwidth_gb_s),
            "start": 1e-3,
        }


@cache
def embeddings(sizes: Architecture) -> float:
    """Parameters of the active ones that no layer has: of the first layer, of the last, and of positions."""
    attention = 2.0 * sizes.hidden * sizes.head_dim * (sizes.heads + sizes.kv_heads)
    layers = sizes.layers * (attention + matrices(sizes) * sizes.hidden * feed_forward_width(sizes))
    return float(np.clip(1e9 * sizes.active_b - layers, sizes.vocab * sizes.hidden, 0.9e9 * sizes.active_b))


def matrices(sizes: Architecture) -> int:
    """Of a feed-forward layer: two, or three where it has a gate."""
    return 3 if gated(sizes) else 2


def attended(facts: Facts) -> float:
    """Tokens that each token looks at, on average over the layers."""
    sizes = facts.architecture
    near = min(facts.sequence, sizes.window) if sizes.window else 0
    full = sizes.full_layers or (0 if sizes.window else sizes.layers)
    return (full * facts.sequence + (sizes.layers - full) * near) / sizes.layers


def quantised(facts: Facts) -> bool:
    """Whether the weights that are not trained are stored in four bits."""
    return facts.plan.adapter in (Adapter.QLORA, Adapter.GPTQ_LORA)


def _reached(what: str, tflops: float) -> float:
    """Operations a second of what a GPU does at so many TFLOPS by its datasheet, in terms of an A100's part of them."""
    return float(1e12 * tflops * (USUAL_TFLOPS / tflops) ** LESS_USED[what])


def _plain(precision: Precision) -> str:
    return "fp32" if precision is Precision.FP32 else "bf16"
