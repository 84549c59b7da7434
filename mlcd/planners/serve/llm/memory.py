"""Whether a deployment fits into GPU memory: weights, KV cache at the requested context, and the engine's overhead.

Symbols   need    GB on the fullest GPU of a deployment          r    need / memory that the engine may use
          t       limit of log r up to which it starts: N(0, 0.1^2) before any trial, since overhead is uncertain

Sharding in a worker: weights by tensor and pipeline parallelism, experts also by attention-data parallelism; the KV
cache by tensor parallelism, up to the number of KV heads. A latent cache is replicated on every GPU.

A deployment that started shows t >= log r; one that ran out of memory shows t < log r, which also rules out every
deployment with an equal or larger r.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from scipy.special import ndtr

from mlcd.catalog.gpus import Gpu, gpu_named
from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.measurement import Outcome
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.deployment import Deployment, deployment_of
from mlcd.planners.serve.llm.weights import expert_parameters, kv_bytes, weight_bytes

UTILISATION = 0.9
"""Share of a GPU's memory that an engine uses: vLLM's `--gpu-memory-utilization`."""
GIB = 1.073741824
"""GB in a GiB: GPU memory is given in GiB."""
CONTEXT_GB = 1.0
"""Memory of a CUDA context with its libraries and captured graphs."""
STEP_TOKENS = 8_192
"""Tokens in one step, which activations are sized for, unless the deployment sets it."""
SPREAD = 0.1
"""Standard deviation of t."""
HOPELESS = 0.01
"""Configurations with a smaller probability to fit are removed."""


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Memory of the fullest GPU of a deployment, in GB. `most_tokens`: capacity of a worker's KV cache."""

    weights_gb: float
    cache_gb: float
    overhead_gb: float
    allowed_gb: float
    most_tokens: int

    @property
    def needed_gb(self) -> float:
        """All parts together."""
        return self.weights_gb + self.cache_gb + self.overhead_gb

    @property
    def share(self) -> float:
        """r: needed over allowed memory."""
        return self.needed_gb / self.allowed_gb

    @property
    def ok(self) -> bool:
        """Whether it is expected to fit."""
        return self.share <= 1

    def __str__(self) -> str:
        parts = f"weights {self.weights_gb:.1f}, keys and values {self.cache_gb:.1f}, engine {self.overhead_gb:.1f}"
        return f"{self.needed_gb:.1f} GB of {self.allowed_gb:.1f} ({parts})"


def fits(
    architecture: Architecture,
    deployment: Deployment,
    gpu: Gpu,
    context: int,
    sequences: float = 1.0,
    utilisation: float = UTILISATION,
) -> MemoryFit:
    """GPU memory of a worker with `sequences` concurrent requests of `context` tokens.

    An engine starts if one request fits; more of them wait. With separate prefill workers, the fuller kind counts.
    """
    decode = _fit(architecture, deployment, gpu, context, sequences, utilisation)
    if not deployment.split:
        return decode
    prefiller = replace(deployment, tp=deployment.prefill_tp, dp=deployment.prefill_dp, pp=1)
    return max(decode, _fit(architecture, prefiller, gpu, context, 1.0, utilisation), key=lambda fit: fit.share)


def _fit(
    architecture: Architecture, deployment: Deployment, gpu: Gpu, context: int, sequences: float, utilisation: float
) -> MemoryFit:
    shards = deployment.tp * deployment.pp
    experts = min(1.0, expert_parameters(architecture) / (1e9 * architecture.params_b))
    # Experts may have a precision of their own, so their bytes are the difference of two totals.
    whole = weight_bytes(architecture, deployment.precision)
    without = weight_bytes(_without_experts(architecture, experts), deployment.precision)
    weights = (without + (whole - without) / deployment.dp) / shards
    heads = 1 if architecture.latent else min(deployment.tp, architecture.kv_heads)
    request = kv_bytes(architecture, deployment.kv_cache, context) / (heads * deployment.pp)
    cache = request * max(1.0, sequences / deployment.dp)
    tokens = deployment.batched_tokens or STEP_TOKENS
    widest = max(architecture.dense_hidden, architecture.expert_hidden * max(architecture.experts_per_token, 1))
    activations = 2.0 * tokens * (4 * architecture.hidden + 2 * widest / deployment.tp)
    overhead = CONTEXT_GB + activations / 1e9
    allowed = utilisation * gpu.memory_gb * GIB
    left = max(0.0, allowed - weights / 1e9 - overhead) * 1e9
    most = int(left / request * context * deployment.dp) if request > 0 else 0
    return MemoryFit(weights / 1e9, cache / 1e9, overhead, allowed, most)


def _without_experts(architecture: Architecture, share: float) -> Architecture:
    return replace(architecture, params_b=architecture.params_b * (1 - share), expert_hidden=0)


def fit_of(
    architecture: Architecture,
    configuration: Configuration,
    context: int,
    own: Mapping[str, Mapping[str, float]] | None,
) -> MemoryFit | None:
    """The memory fit of a configuration; None on a CPU. `own`: data of GPUs that are not in `gpus.csv`."""
    deployment = deployment_of(configuration)
    if not deployment.gpu:
        return None
    return fits(architecture, deployment, gpu_named(deployment.gpu, own), context)


def fit_probabilities(shares: Floats, ran: Sequence[float] = (), failed: Sequence[float] = ()) -> Floats:
    """The probability that deployments with these r start, given the r of others that ran or ran out of memory.

    A failure with a smaller r than a success had another reason, and is ignored.
    """
    least = log(max(ran)) if ran else -np.inf
    most = min((log(each) for each in failed if log(each) > least), default=np.inf)
    low, high = ndtr(least / SPREAD), ndtr(most / SPREAD)
    at = np.clip(ndtr(np.log(shares) / SPREAD), low, high)
    mass = high - low
    if mass < 1e-12:  # far from the prior's centre: undecided between the two bounds
        return np.asarray(np.where(np.log(shares) <= least, 1.0, np.where(np.log(shares) >= most, 0.0, 0.5)))
    return np.asarray((high - at) / mass)


def chances_to_fit(
    architecture: Architecture,
    space: Space,
    history: History,
    context: int,
    own: Mapping[str, Mapping[str, float]] | None = None,
) -> Floats:
    """The probability that each configuration of a space starts, given the trials so far."""
    found = [fit_of(architecture, configuration, context, own) for configuration in space.configurations]
    shares = np.array([fit.share if fit is not None else 0.0 for fit in found])

    def of(outcomes: Sequence[bool]) -> list[float]:
        pairs = zip(history.measurements, outcomes, strict=True)
        places = [space.index.get(m.configuration) for m, counts in pairs if counts]
        return [float(shares[at]) for at in places if at is not None and shares[at] > 0]

    ran = of([m.ok for m in history.measurements])
    failed = of([m.outcome is Outcome.OUT_OF_MEMORY for m in history.measurements])
    with np.errstate(divide="ignore"):  # a CPU's share is 0: it always fits
        return fit_probabilities(shares, ran, failed)


def fitting(
    name: str,
    architecture: Architecture,
    space: Space,
    context: int,
    own: Mapping[str, Mapping[str, float]] | None = None,
) -> Space:
    """A space without the configurations that cannot fit. UserError if none fits."""
    keep = chances_to_fit(architecture, space, History(), context, own) > HOPELESS
    if not keep.any():
        fullest = [(fit_of(architecture, each, context, own), each) for each in space.configurations]
        fit, where = min(((fit, each) for fit, each in fullest if fit is not None), key=lambda pair: pair[0].share)
        raise UserError(f"{name} fits no GPU offered: the nearest is {where}, where each GPU needs {fit}")
    kept = {configuration for configuration, kept in zip(space.configurations, keep, strict=True) if kept}
    choices = []
    for choice in space.choices:
        settings = tuple(each.setting for each in choice.configurations if each in kept and each.setting is not None)
        if settings:
            choices.append(replace(choice, settings=settings))
    return replace(space, choices=tuple(choices))
