"""A roofline model of language models: TPOT and TTFT as sums of terms, each computed from datasheet numbers.

    TPOT = sum_j a_j x_j        TTFT = sum_k b_k z_k        a, b: measured over theoretical time; 1 is ideal

Symbols   B    concurrent requests in one decoding worker           n    its GPUs: tp x dp
          tp   tensor parallelism    dp  attention-data parallelism    ep  expert parallelism
          F    operations for the prefill of one prompt (2 x active parameters x tokens, and attention over them)

Each decoding step reads the weights once (of the experts, those that B tokens choose) and the KV cache of all requests;
it exchanges activations between GPUs after each layer, and costs the host a fixed time per layer. If a worker also does
prefill, each step does B / (output tokens) of one prompt's work. Expert operations are terms of their own, since many
small matrix products run less efficiently than a large one. A first token waits for the prefill of its own prompt and
of the prompts before it, for a step, and for admission if more requests arrive than a worker admits.

Williams, Waterman and Patterson, 'Roofline', CACM 2009; Pope et al., 'Efficiently Scaling Transformer Inference', 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.catalog.gpus import Gpu
from mlcd.core.configuration import Floats
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.deployment import Deployment
from mlcd.planners.serve.llm.nouns import Prompts
from mlcd.planners.serve.llm.weights import expert_parameters, kv_bytes, weight_parts

TPOT_TERMS = {
    "weights": 1.3, "experts": 1.5, "keys": 1.5, "exchange": 1.5, "dispatch": 1.5, "tensor_layers": 10.0,
    "expert_layers": 10.0, "layers": 20.0, "moe_layers": 20.0, "step": 0.5, "operations": 1.5, "prompts": 2.0,
    "expert_operations": 1.5, "expert_prompts": 2.0,
}  # fmt: skip
"""The terms of TPOT, and the prior values of their coefficients.

`tensor_layers`, `expert_layers`, `layers`, `moe_layers`: microseconds per layer; `step`: milliseconds.
"""
TTFT_TERMS = {
    "prompt": 2.0, "prompts_before": 0.3, "some_before": 0.5, "layers": 5.0, "constant": 2.0, "steps": 1.0,
    "weights": 2.0, "memory_wait": 0.03, "place_wait": 1.0,
}  # fmt: skip
"""The same for TTFT. `layers`: units of 10 microseconds; `constant`: of 10 ms; `steps`: decoding steps (TPOT each)."""
GROUPS = {
    "reads": ("weights", "experts"), "keys": ("keys",), "links": ("exchange", "dispatch"),
    "host": ("tensor_layers", "expert_layers", "layers", "moe_layers", "step"),
    "operations": ("operations", "prompts", "expert_operations", "expert_prompts"),
}  # fmt: skip
"""Groups of TPOT terms whose errors are correlated."""
MEMORY_USED = 0.88
"""Share of a GPU's memory for weights and KV cache; the rest is the engine's."""
LEAST_CACHE_BYTES = 1e9


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """A model on a deployment at one concurrency."""

    architecture: Architecture
    deployment: Deployment
    gpu: Gpu
    prompts: Prompts
    concurrency: int

    @property
    def per_worker(self) -> float:
        """B: requests that one worker processes concurrently."""
        return max(1.0, min(self.sent_to_worker, self.deployment.sequences or self.sent_to_worker))

    @property
    def sent_to_worker(self) -> float:
        """Concurrent requests per worker, including those that wait for admission."""
        return self.concurrency / self.deployment.decode_workers


@dataclass(frozen=True)
class Terms:
    """The terms of many load points, one row each, in the order of TPOT_TERMS and TTFT_TERMS.

    TTFT terms that depend on TPOT are stored in units of it: `steps` is 1 step, waits are in whole answers.
    """

    tpot: Floats
    ttft: Floats
    tokens_out: Floats

    def log_tpot(self, coefficients: Floats) -> Floats:
        """log TPOT by the roofline model."""
        return np.asarray(np.log(self.tpot @ coefficients))

    def log_ttft(self, coefficients: Floats, tpot_s: Floats) -> Floats:
        """log TTFT by the roofline model, in which TTFT is linear in TPOT (one value per row, or samples of all)."""
        at_zero, at_one_s = (self.ttft_columns(np.full(len(self.ttft), each)) @ coefficients for each in (0.0, 1.0))
        return np.asarray(np.log(at_zero + (at_one_s - at_zero) * tpot_s))

    def waiting_share(self, coefficients: Floats, tpot_s: Floats) -> Floats:
        """The share of the modelled TTFT that is waiting for memory or admission."""
        columns = self.ttft_columns(tpot_s) * coefficients
        return np.asarray(columns[:, _WAITS].sum(axis=1) / columns.sum(axis=1))

    def admission_wait_s(self, tpot_s: Floats) -> Floats:
        """A lower bound on the wait for admission: whole answers of other requests."""
        answers = self.ttft[:, list(TTFT_TERMS).index("place_wait")]
        return np.asarray(answers * (self.tokens_out - 1) * tpot_s)

    def ttft_columns(self, tpot_s: Floats) -> Floats:
        """The terms of TTFT in seconds."""
        columns = self.ttft.copy()
        columns[:, _STEPS] *= tpot_s
        columns[:, _WAITS] *= (self.tokens_out * tpot_s)[:, None]
        return columns


_STEPS = list(TTFT_TERMS).index("steps")
_WAITS = [list(TTFT_TERMS).index(name) for name in ("memory_wait", "place_wait")]


def terms_of(points: Sequence[LoadPoint]) -> Terms:
    """The terms of load points."""
    rows = [(_tpot_terms(point), _ttft_terms(point)) for point in points]
    tpot = np.array([[row[name] for name in TPOT_TERMS] for row, _ in rows])
    ttft = np.array([[row[name] for name in TTFT_TERMS] for _, row in rows])
    return Terms(tpot, ttft, np.array([float(point.prompts.output_tokens) for point in points]))


def _tpot_terms(point: LoadPoint) -> dict[str, float]:
    sizes, at, gpu, batch = point.architecture, point.deployment, point.gpu, point.per_worker
    bandwidth, link, gpus = 1e9 * gpu.bandwidth_gb_s, 1e9 * gpu.link_gb_s(at.worker_gpus), at.worker_gpus
    own_batch = batch / at.dp
    experts, rest = weight_parts(sizes, at.precision)
    half_answered = point.prompts.input_tokens + point.prompts.output_tokens / 2
    exchanged = 4 * sizes.layers * own_batch * sizes.hidden * 2 * (at.tp - 1) / at.tp
    spread = at.ep > 1 or at.dp > 1
    dispatched = sizes.layers * batch / gpus * sizes.experts_per_token * sizes.hidden * 2 if spread else 0.0
    peak = 1e12 * gpu.tflops(at.precision) * gpus
    by_experts, begun = expert_operations(sizes), 0.0 if at.split else batch / point.prompts.output_tokens
    read = begun * point.prompts.input_tokens
    return {
        "weights": rest / at.tp / bandwidth,
        "experts": experts * touched(sizes, batch) / gpus / bandwidth,
        "keys": own_batch * _keys_read(point, half_answered) / bandwidth,
        "exchange": exchanged / link,
        "dispatch": dispatched / link,
        "tensor_layers": 1e-6 * sizes.layers * (at.tp > 1),
        "expert_layers": 1e-6 * sizes.layers * spread,
        "layers": 1e-6 * sizes.layers,
        "moe_layers": 1e-6 * sizes.layers * (sizes.experts > 0),
        "step": 1e-3,
        "operations": (2e9 * sizes.active_b - by_experts) * batch / peak,
        "prompts": (begun * prompt_operations(point) - read * by_experts) / peak,
        "expert_operations": by_experts * batch / peak,
        "expert_prompts": read * by_experts / peak,
    }


def _ttft_terms(point: LoadPoint) -> dict[str, float]:
    sizes, at, gpu = point.architecture, point.deployment, point.gpu
    split = at.split and at.prefill_workers > 0
    gpus = at.prefill_tp * max(at.prefill_dp, 1) if split else at.worker_gpus
    readers = gpus * at.prefill_workers if split else gpus * at.decode_workers
    peak = 1e12 * gpu.tflops(at.precision)
    prompt = prompt_operations(point) / (peak * gpus)
    before = point.concurrency * prompt_operations(point) / (peak * readers)
    experts, rest = weight_parts(sizes, at.precision)
    read = rest / at.tp + experts * touched(sizes, point.prompts.input_tokens) / at.worker_gpus
    return {
        "prompt": prompt,
        "prompts_before": before,
        "some_before": float(np.sqrt(prompt * before)),
        "layers": 1e-5 * sizes.layers,
        "constant": 1e-2,
        "steps": 1.0,
        "weights": read / (1e9 * gpu.bandwidth_gb_s),
        "memory_wait": max(0.0, point.per_worker / _most_in_memory(point) - 1.0),
        "place_wait": point.sent_to_worker / point.per_worker - 1.0 if point.sent_to_worker > 1 else 0.0,
    }


def touched(sizes: Architecture, tokens: float) -> float:
    """The share of the experts that this many tokens use, if each token chooses at random."""
    return 1.0 - float((1.0 - sizes.experts_per_token / sizes.experts) ** tokens) if sizes.experts else 0.0


def expert_operations(sizes: Architecture) -> float:
    """Operations of the chosen experts for one token."""
    if not sizes.experts:
        return 0.0
    return 2.0 * min(expert_parameters(sizes) * sizes.experts_per_token / sizes.experts, 1e9 * sizes.active_b)


def prompt_operations(point: LoadPoint) -> float:
    """F: operations for the prefill of one prompt."""
    sizes, tokens = point.architecture, point.prompts.input_tokens
    attended = 2.0 * sizes.full_layers * sizes.heads * sizes.head_dim * tokens * tokens
    return 2e9 * sizes.active_b * tokens + attended


def _keys_read(point: LoadPoint, tokens: float) -> float:
    """KV cache bytes of one request that a GPU reads in a step. A latent cache is replicated on every GPU."""
    sizes, at = point.architecture, point.deployment
    return kv_bytes(sizes, at.kv_cache, tokens) / (1 if sizes.latent else min(at.tp, sizes.kv_heads))


def _most_in_memory(point: LoadPoint) -> float:
    """The number of requests whose KV cache fits into the memory of a worker."""
    sizes, at = point.architecture, point.deployment
    experts, rest = weight_parts(sizes, at.precision)
    half_answered = point.prompts.input_tokens + point.prompts.output_tokens / 2
    free = 1e9 * point.gpu.memory_gb * MEMORY_USED - rest / at.tp - experts / at.worker_gpus
    if at.kv_cache_gb:
        free = 1e9 * at.kv_cache_gb
    return max(free, LEAST_CACHE_BYTES) * at.dp / _keys_read(point, half_answered)
