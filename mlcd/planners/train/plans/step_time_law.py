"""A law for one optimizer step of training a transformer: a sum of terms, each a time that a datasheet would tell.

    step  = a (1 + bubble (p - 1) / a) micro + once
    micro = (gpu^k + host^k)^(1/k) + links          the host starts kernels while the GPU works: the slower one counts

Symbols   a   micro-batches that a rank takes one after the other      p   stages of its pipeline      k   `sharpness`

Every part is sum_j c_j x_j with x_j >= 0 from the spec alone and c_j > 0: how far programs are from the textbook.
A forward pass is one pass over the layers, a backward pass two (of the inputs and of the weights: the latter is spared
where an adapter is trained), and activations that were not kept are computed by one more. What it reaches:
docs/methods/training-plans.md.

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
SHAPE = {"bubble": 1.0, "sharpness": 4.0}
"""Of the law itself; `sharpness`: of the change from waiting for the GPU to waiting for the host."""
ATTENTION = ("attention", "exponentials")
TERMS = {**GPU, **HOST, **LINKS, **ONCE, **SHAPE}
SURE = {"matmul": 0.15, "attention": 0.3, "bubble": 0.2, "sharpness": 0.4}
UNSURE = 0.6
"""How far, in the log, a coefficient may be from what it is taken for."""
PARTS = {
    "compute": ("matmul",),
    "attention": ATTENTION,
    "memory": (*(name for name in GPU if name not in ("matmul", *ATTENTION)), "optimizer"),
    "host": (*HOST, "start"),
    "links": (*LINKS, "gradients", "gradients_network"),
    "bubble": ("bubble",),
    "overlap": ("sharpness",),
}
"""Terms that err together."""


@dataclass(frozen=True)
class Terms:
    """The terms of many runs, a row each, in the order of `TERMS`; those of `SHAPE` are 0."""

    values: Floats
    accumulation: Floats
    stages: Floats

    def log_step(self, coefficients: Floats) -> Floats:
        """By the law."""
        return np.asarray(np.log(self._times(coefficients).step))

    def shares(self, coefficients: Floats) -> Floats:
        """By how much of itself the log of the step moves with the log of each coefficient."""
        at, bubble, sharpness = self._times(coefficients), coefficients[..., -2], coefficients[..., -1]
        repeated = self.accumulation * at.waiting
        weight = np.ones_like(self.values)
        weight[:, _AT["GPU"]] = (at.of_gpu * at.both / at.gpu)[:, None]
        weight[:, _AT["HOST"]] = ((1 - at.of_gpu) * at.both / at.host)[:, None]
        weight[:, : _AT["ONCE"].start] *= repeated[:, None]
        shares = self.values * coefficients * weight
        shares[:, -2] = at.micro * bubble * (self.stages - 1)
        doubt = -(xlogy(at.of_gpu, at.of_gpu) + xlogy(1 - at.of_gpu, 1 - at.of_gpu))
        shares[:, -1] = -repeated * at.both * doubt / sharpness
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
    """Seconds of a step and of a micro-batch: without and with its links, and of these by the GPU and by the host.

    `waiting`: by how much a pipeline that fills and empties makes it longer. `of_gpu`: what of it waits for the GPU.
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
