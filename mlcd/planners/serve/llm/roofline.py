"""A roofline law for language models: TPOT and TTFT as sums of terms, each a time that a datasheet would tell.

    TPOT = sum_j a_j x_j        TTFT = sum_k b_k z_k        a, b: how far engines are from the textbook; 1 is perfect

Symbols   B    requests at once in one worker that decodes          n    its GPUs: tp x dp
          tp   tensor parallelism    dp  attention-data parallelism    ep  expert parallelism
          F    operations to read one prompt (2 x active parameters x tokens, and attention over them)

Each decoding step reads the weights once (of experts those that B tokens choose), and the keys and values of all
requests; it exchanges activations between GPUs after each layer, and costs the host a fixed time a layer. Where a
worker also reads prompts, each step does B / tokens out of one prompt's work. What experts do of either is a term of
its own: many small matrices are multiplied less well than a large one. A first token waits for its own prompt, for the
prompts before it, for a step, and for a place where more requests come than a worker takes at once.

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
"""The terms of TPOT, and what their coefficients are taken for before anything was measured.

`tensor_layers`, `expert_layers`, `layers`, `moe_layers`: microseconds a layer; `step`: milliseconds.
"""
TTFT_TERMS = {
    "prompt": 2.0, "prompts_before": 0.3, "some_before": 0.5, "layers": 5.0, "constant": 2.0, "steps": 1.0,
    "weights": 2.0, "memory_wait": 0.03, "place_wait": 1.0,
}  # fmt: skip
"""Those of TTFT. `layers`: 10 microseconds each; `constant`: 10 ms; `steps`: of decoding, by the law of TPOT."""
GROUPS = {
    "reads": ("weights", "experts"), "keys": ("keys",), "links": ("exchange", "dispatch"),
    "host": ("tensor_layers", "expert_layers", "layers", "moe_layers", "step"),
    "operations": ("operations", "prompts", "expert_operations", "expert_prompts"),
}  # fmt: skip
"""Terms of TPOT that err together."""
MEMORY_USED = 0.88
"""Of a GPU's memory, by weights, keys and values; the rest is the engine's."""
LEAST_CACHE_BYTES = 1e9


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """A model on a deployment with so many requests at once."""

    architecture: Architecture
    deployment: Deployment
    gpu: Gpu
    prompts: Prompts
    concurrency: int

    @property
    def per_worker(self) -> float:
        """B: requests at once in a worker, of those that have a place there."""
        return max(1.0, min(self.sent_to_worker, self.deployment.sequences or self.sent_to_worker))

    @property
    def sent_to_worker(self) -> float:
        """Requests at once for a worker, with those that wait for a place."""
        return self.concurrency / self.deployment.decode_workers


@dataclass(frozen=True)
class Terms:
    """The terms of many load points, one row each, in the order of TPOT_TERMS and TTFT_TERMS.

    The term `steps` of TTFT is 1 here: it is TPOT itself, and waits that last whole answers are in answers.
    """

    tpot: Floats
    ttft: Floats
    tokens_out: Floats

    def log_tpot(self, coefficients: Floats) -> Floats:
        """By the law."""
        return np.asarray(np.log(self.tpot @ coefficients))

    def log_ttft(self, coefficients: Floats, tpot_s: Floats) -> Floats:
        """By the law, where TPOT is known or believed to be this: of every row, or samples of all rows."""
        none, a_second = (self.ttft_columns(np.full(len(self.ttft), each)) @ coefficients for each in (0.0, 1.0))
        return np.asarray(np.log(none + (a_second - none) * tpot_s))

    def waiting_share(self, coefficients: Floats, tpot_s: Floats) -> Floats:
        """How much of the law's TTFT is waiting for memory or a place: whole answers, which TPOT tells."""
        columns = self.ttft_columns(tpot_s) * coefficients
        return np.asarray(columns[:, _WAITS].sum(axis=1) / columns.sum(axis=1))

    def place_wait_s(self, tpot_s: Floats) -> Floats:
        """How long a request waits at the least for a place: whole answers, each of which takes its tokens' time."""
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
    """The share of the experts that so many tokens choose, each by lot."""
    return 1.0 - float((1.0 - sizes.experts_per_token / sizes.experts) ** tokens) if sizes.experts else 0.0


def expert_operations(sizes: Architecture) -> float:
    """What the experts that a token chooses do for it."""
    if not sizes.experts:
        return 0.0
    return 2.0 * min(expert_parameters(sizes) * sizes.experts_per_token / sizes.experts, 1e9 * sizes.active_b)


def prompt_operations(point: LoadPoint) -> float:
    """F: to read one prompt."""
    sizes, tokens = point.architecture, point.prompts.input_tokens
    attended = 2.0 * sizes.full_layers * sizes.heads * sizes.head_dim * tokens * tokens
    return 2e9 * sizes.active_b * tokens + attended


def _keys_read(point: LoadPoint, tokens: float) -> float:
    """Bytes of one request's keys and values that a GPU reads in a step. Latent ones are on every GPU."""
    sizes, at = point.architecture, point.deployment
    return kv_bytes(sizes, at.kv_cache, tokens) / (1 if sizes.latent else min(at.tp, sizes.kv_heads))


def _most_in_memory(point: LoadPoint) -> float:
    """Requests whose keys and values fit into the memory of a worker."""
    sizes, at = point.architecture, point.deployment
    experts, rest = weight_parts(sizes, at.precision)
    half_answered = point.prompts.input_tokens + point.prompts.output_tokens / 2
    free = 1e9 * point.gpu.memory_gb * MEMORY_USED - rest / at.tp - experts / at.worker_gpus
    if at.kv_cache_gb:
        free = 1e9 * at.kv_cache_gb
    return max(free, LEAST_CACHE_BYTES) * at.dp / _keys_read(point, half_answered)
