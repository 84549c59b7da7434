"""The step-time law: an analytical model of one optimizer step of a transformer, as a sum of datasheet times.

    step  = a (1 + bubble (p - 1) / a) micro + once
    micro = (gpu^k + host^k)^(1/k) + links          the host launches kernels while the GPU works: the slower one counts

Symbols   a   micro-batches that a rank accumulates     p   stages of the pipeline     k   `sharpness`

Each of gpu, host, links and once is a sum of c_j x_j. The term x_j >= 0 is a time computed from the run spec; the
coefficient c_j > 0 is the ratio of measured to theoretical time, and is learned. A forward pass is one pass over the
layers; a backward pass is two (gradients of the inputs and of the weights; the latter is not needed for frozen
weights); recomputing activations is one more. Accuracy: docs/methods/training-plans.md.

Narayanan et al., 'Efficient large-scale language model training on GPU clusters using Megatron-LM', SC 2021;
Rajbhandari et al., 'ZeRO', SC 2020; Williams et al., 'Roofline', CACM 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd.planners.train.plans.step_terms import StepTerms

GPU = {
    "matmul": 1.3, "attention": 2.0, "exponentials": 0.5, "elementwise": 2.5, "replicated": 1.5, "logits": 1.0,
    "softmax": 1.0, "weights": 1.0, "casts": 1.0, "cast_activations": 1.0, "dequantise": 2.0,
}  # fmt: skip
"""Terms of a micro-batch on the GPU, compute and memory traffic, each with the prior guess of its coefficient."""
HOST = {
    "layers": 500.0, "gated_layers": 200.0, "again_layers": 2000.0, "cast_layers": 200.0, "adapter_layers": 100.0,
    "expert_layers": 600.0, "expert_kernels": 100.0,
}  # fmt: skip
"""Terms of launching kernels on the host: microseconds a layer and pass; `expert_kernels`: also for each expert."""
LINKS = {
    "tensor": 1.0, "tensor_network": 0.6, "tensor_calls": 20.0, "pipeline": 0.8, "gathers": 1.5, "gathers_network": 0.4,
    "dispatch": 4.0, "context": 1.0,
}  # fmt: skip
"""Terms of communication for a micro-batch. `tensor_calls`: microseconds for each exchange."""
ONCE = {"gradients": 1.0, "gradients_network": 0.8, "optimizer": 1.3, "start": 5.0}
"""Terms that occur once in a step. `start`: milliseconds."""
SHAPE = {"bubble": 1.0, "sharpness": 4.0}
"""Coefficients of the formula itself; `sharpness`: of the transition from GPU-bound to host-bound."""
ATTENTION = ("attention", "exponentials")
TERMS = {**GPU, **HOST, **LINKS, **ONCE, **SHAPE}
SURE = {"matmul": 0.15, "attention": 0.3, "bubble": 0.2, "sharpness": 0.4}
UNSURE = 0.6
"""Prior standard deviation of the log of a coefficient; `SURE` has smaller ones."""
PARTS = {
    "compute": ("matmul",),
    "attention": ATTENTION,
    "memory": (*(name for name in GPU if name not in ("matmul", *ATTENTION)), "optimizer"),
    "host": (*HOST, "start"),
    "links": (*LINKS, "gradients", "gradients_network"),
    "bubble": ("bubble",),
    "overlap": ("sharpness",),
}
"""Groups of terms with a common error."""


@dataclass(frozen=True)
class Terms:
    """The terms of many runs, a row each, in the order of `TERMS`; those of `SHAPE` are 0."""

    values: Floats
    accumulation: Floats
    stages: Floats

    def log_step(self, coefficients: Floats) -> Floats:
        """Log seconds of a step."""
        return np.asarray(np.log(self._times(coefficients).step))

    def shares(self, coefficients: Floats) -> Floats:
        """Elasticities: derivative of the log of the step with respect to the log of each coefficient."""
        at, bubble, sharpness = self._times(coefficients), coefficients[..., -2], coefficients[..., -1]
        repeated = self.accumulation * at.waiting
        weight = np.ones_like(self.values)
        weight[:, _AT["GPU"]] = (at.of_gpu * at.both / at.gpu)[:, None]
        weight[:, _AT["HOST"]] = ((1 - at.of_gpu) * at.both / at.host)[:, None]
        weight[:, : _AT["ONCE"].start] *= repeated[:, None]
        shares = self.values * coefficients * weight
        shares[:, -2] = at.micro * bubble * (self.stages - 1)
        entropy = -(xlogy(at.of_gpu, at.of_gpu) + xlogy(1 - at.of_gpu, 1 - at.of_gpu))
        shares[:, -1] = -repeated * at.both * entropy / sharpness
        return np.asarray(shares / at.step[:, None])

    def _times(self, coefficients: Floats) -> _Times:
        bubble, sharpness = coefficients[..., -2], coefficients[..., -1]
        times = self.values * coefficients
        gpu, host, links, once = (times[:, _AT[part]].sum(axis=1) for part in _AT)
        both = (gpu**sharpness + host**sharpness) ** (1 / sharpness)
        waiting = 1 + bubble * (self.stages - 1) / self.accumulation
        micro = both + links
        step = self.accumulation * waiting * micro + once
        return _Times(step, micro, both, gpu, host, waiting, (gpu / both) ** sharpness)


@dataclass(frozen=True)
class _Times:
    """Seconds of a step and of its parts.

    `micro`: a micro-batch; `both`: the same without communication, from `gpu` and `host`. `waiting`: factor by which
    the pipeline bubble makes a step longer. `of_gpu`: weight of the GPU in `both`.
    """

    step: Floats
    micro: Floats
    both: Floats
    gpu: Floats
    host: Floats
    waiting: Floats
    of_gpu: Floats


def _slices() -> dict[str, slice]:
    found, start = {}, 0
    for name, part in {"GPU": GPU, "HOST": HOST, "LINKS": LINKS, "ONCE": ONCE}.items():
        found[name] = slice(start, start + len(part))
        start += len(part)
    return found


_AT = _slices()


def terms_of(runs: Sequence[RunSpec]) -> Terms:
    """The terms of runs."""
    rows = [StepTerms(spec) for spec in runs]
    values = [[{**row.gpu, **row.host, **row.links, **row.once}[name] for name in (*GPU, *HOST, *LINKS, *ONCE)]
              for row in rows]  # fmt: skip
    table = np.array(values, dtype=float).reshape(len(rows), -1)
    return Terms(
        np.column_stack([table, np.zeros((len(rows), len(SHAPE)))]),
        np.array([spec.accumulation for spec in runs], dtype=float),
        np.array([float(spec.plan.pipeline) for spec in runs]),
    )
