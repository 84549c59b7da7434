"""What fits on a GPU: weights, keys and values at the asked context, and what the engine takes besides.

Symbols   need    GB on the fullest GPU of a deployment          r    need / what the engine may use of it
          t       log r up to which it really starts: N(0, 0.1^2) before any trial, as no engine tells all that it holds

    shared by the GPUs of a worker: weights by tensor and pipeline parallelism, experts by attention-data parallelism
    too; keys and values by tensor parallelism as far as there are heads for it. A latent cache is on each of them.

A deployment that started shows t >= log r; one that ran out of memory, t < log r: whatever needs as large a share or a
larger one is then out as well.
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
"""Of a GPU's memory, that an engine takes: vLLM's `--gpu-memory-utilization`."""
GIB = 1.073741824
"""GB in a GiB, which GPU memory is counted in."""
CONTEXT_GB = 1.0
"""Of a CUDA context, with the libraries and captured graphs."""
STEP_TOKENS = 8_192
"""Tokens in one step, unless the deployment says how many: what activations are sized by."""
SPREAD = 0.1
"""Of t."""
HOPELESS = 0.01
"""A smaller chance to fit is none."""


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Memory of the fullest GPU of a deployment, in GB. `most_tokens`: of keys and values, in a worker."""

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
        """r: of what it may use."""
        return self.needed_gb / self.allowed_gb

    @property
    def ok(self) -> bool:
        """Whether it should fit."""
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
    """How full a GPU is with so many requests of so many tokens at once in a worker.

    An engine starts if one request fits; more of them wait. The fuller worker of a prefill/decode split counts.
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
    # Experts have their own precision: what the others take is what is left of the whole.
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
    """Of a configuration; None on a CPU. `own`: numbers of GPUs that are not in `gpus.csv`."""
    deployment = deployment_of(configuration)
    if not deployment.gpu:
        return None
    return fits(architecture, deployment, gpu_named(deployment.gpu, own), context)


def chances(shares: Floats, ran: Sequence[float] = (), failed: Sequence[float] = ()) -> Floats:
    """That each of some deployments starts, by its share r, after others with these shares ran or ran out of memory.

    A failure that needed less than something that ran had another reason, and tells nothing.
    """
    least = log(max(ran)) if ran else -np.inf
    most = min((log(each) for each in failed if log(each) > least), default=np.inf)
    low, high = ndtr(least / SPREAD), ndtr(most / SPREAD)
    at = np.clip(ndtr(np.log(shares) / SPREAD), low, high)
    mass = high - low
    if mass < 1e-12:  # far out, where the prior says nothing: between the two ends nothing is known
        return np.asarray(np.where(np.log(shares) <= least, 1.0, np.where(np.log(shares) >= most, 0.0, 0.5)))
    return np.asarray((high - at) / mass)


def chances_to_fit(
    architecture: Architecture,
    space: Space,
    history: History,
    context: int,
    own: Mapping[str, Mapping[str, float]] | None = None,
) -> Floats:
    """That each configuration of a space starts, by what has started and what has run out of memory so far."""
    found = [fit_of(architecture, configuration, context, own) for configuration in space.configurations]
    shares = np.array([fit.share if fit is not None else 0.0 for fit in found])

    def of(outcomes: Sequence[bool]) -> list[float]:
        pairs = zip(history.measurements, outcomes, strict=True)
        places = [space.index.get(m.configuration) for m, counts in pairs if counts]
        return [float(shares[at]) for at in places if at is not None and shares[at] > 0]

    ran = of([m.ok for m in history.measurements])
    failed = of([m.outcome is Outcome.OUT_OF_MEMORY for m in history.measurements])
    with np.errstate(divide="ignore"):  # a CPU's share is 0: it always fits
        return chances(shares, ran, failed)


def fitting(
    name: str,
    architecture: Architecture,
    space: Space,
    context: int,
    own: Mapping[str, Mapping[str, float]] | None = None,
) -> Space:
    """A space without what cannot fit; one line for a model that fits nowhere."""
    keep = chances_to_fit(architecture, space, History(), context, own) > HOPELESS
    if not keep.any():
        fullest = [(fit_of(architecture, each, context, own), each) for each in space.configurations]
        fit, where = min(((fit, each) for fit, each in fullest if fit is not None), key=lambda pair: pair[0].share)
        raise UserError(f"{name} does not fit any GPU offered: the most room is on {where}, where it needs {fit} a GPU")
    kept = {configuration for configuration, kept in zip(space.configurations, keep, strict=True) if kept}
    choices = []
    for choice in space.choices:
        settings = tuple(each.setting for each in choice.configurations if each in kept and each.setting is not None)
        if settings:
            choices.append(replace(choice, settings=settings))
    return replace(space, choices=tuple(choices))
