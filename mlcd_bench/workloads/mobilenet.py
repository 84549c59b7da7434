"""A small network like MobileNet (Howard et al., 2017): depthwise separable convolutions, for images of 32 x 32.

A first convolution with stride 2, then blocks of depthwise 3 x 3 and pointwise 1 x 1, each with group normalisation and
ReLU, global average pooling, and one linear layer. Group instead of batch normalisation: functions do not have to share
a running state. PyTorch on the CPU, imported for the first gradient; the size is known without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.functions.workloads import Features, Labels, Vector

STEM = 16
BLOCKS = ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2))
"""Channels in, channels out, stride."""
GROUP = 8
"""Channels in a normalisation group."""
AT_ONCE = 256
"""Samples in one pass of a loss, to fit into a small function's memory."""

Tensor = Any


@dataclass(frozen=True)
class MobileNet:
    """For 3 x 32 x 32 images; cross-entropy, with `l2` times the parameters added to the gradient."""

    shape: tuple[int, ...]
    classes: int
    l2: float = 0.0

    def __post_init__(self) -> None:
        if len(self.shape) != 3:
            raise UserError(f"'mobilenet' needs images, but the data have samples of shape {self.shape}: use 'images'")

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the tensors in the order of their use: filters, then scale and shift of the normalisation."""
        shapes: list[tuple[int, ...]] = [(STEM, self.shape[0], 3, 3), (STEM,), (STEM,)]
        for before, after, _ in BLOCKS:
            shapes += [(before, 1, 3, 3), (before,), (before,), (after, before, 1, 1), (after,), (after,)]
        return (*shapes, (self.classes, BLOCKS[-1][1]), (self.classes,))

    @property
    def size(self) -> int:
        """The number of parameters: about 19,000 for ten classes."""
        return sum(math.prod(shape) for shape in self.shapes)

    def initial(self, seed: int) -> Vector:
        """Filters by He et al. (2015), scales 1, shifts 0; drawn by numpy, to be equal for all versions of PyTorch."""
        rng = np.random.default_rng(seed)
        parts = []
        for shape, before in zip(self.shapes, ((), *self.shapes), strict=False):
            if len(shape) > 1:
                parts.append(rng.standard_normal(math.prod(shape)) * math.sqrt(2 / math.prod(shape[1:])))
            else:
                is_scale = len(before) == 4
                parts.append(np.full(shape, float(is_scale)))
        return np.concatenate(parts).astype(np.float32)

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> tuple[float, Vector]:
        """By automatic differentiation."""
        torch = _torch()
        flat = torch.tensor(parameters, requires_grad=True)
        loss = self._loss(flat, features, labels)
        (gradient,) = torch.autograd.grad(loss, flat)
        return float(loss.detach()), np.asarray(gradient.numpy() + np.float32(self.l2) * parameters, np.float32)

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """The mean loss, in several passes, without a gradient."""
        torch = _torch()
        flat, total = torch.tensor(parameters), 0.0
        with torch.no_grad():
            for first in range(0, len(labels), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                total += float(self._loss(flat, features[part], labels[part])) * len(labels[part])
        return total / len(labels)

    def _loss(self, flat: Tensor, features: Features, labels: Labels) -> Tensor:
        torch = _torch()
        scores = self._scores(flat, torch.tensor(features))
        return torch.nn.functional.cross_entropy(scores, torch.tensor(labels, dtype=torch.int64))

    def _scores(self, flat: Tensor, pictures: Tensor) -> Tensor:
        functional = _torch().nn.functional
        pieces = flat.split([math.prod(shape) for shape in self.shapes])
        parts: Iterator[Tensor] = (piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True))

        def convolved(x: Tensor, stride: int = 1, groups: int = 1) -> Tensor:
            filters, scale, shift = next(parts), next(parts), next(parts)
            x = functional.conv2d(x, filters, stride=stride, padding=filters.shape[-1] // 2, groups=groups)
            return functional.relu(functional.group_norm(x, len(scale) // GROUP, scale, shift))

        x = convolved(pictures, stride=2)
        for before, _, stride in BLOCKS:
            x = convolved(convolved(x, stride, groups=before))
        return functional.linear(x.mean((2, 3)), next(parts), next(parts))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("training 'mobilenet'", "frameworks") from None
    return torch
