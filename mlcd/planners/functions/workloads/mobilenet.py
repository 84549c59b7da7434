"""A small network like MobileNet (Howard et al., 2017): convolutions that are split into depth and point, on 32 x 32.

A first convolution at stride 2, then blocks of depthwise 3 x 3 and pointwise 1 x 1, each normalised in groups and cut
at zero, the mean over the picture, and one linear layer. Groups, not batches, are normalised: there is no running state
that functions would have to agree on. PyTorch on the CPU, imported when the first gradient is taken; the size is known
without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.functions.workloads.protocol import Features, Labels, Vector

STEM = 16
BLOCKS = ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2))
"""Channels in, channels out, stride."""
GROUP = 8
"""Channels that are normalised together."""
AT_ONCE = 256
"""Samples that a loss is computed over at once, to stay within a small function's memory."""

Tensor = Any


@dataclass(frozen=True)
class MobileNet:
    """Of 3 x 32 x 32 pictures; plain cross-entropy, with `l2` times the parameters added to the gradient."""

    shape: tuple[int, ...]
    classes: int
    l2: float = 0.0

    def __post_init__(self) -> None:
        if len(self.shape) != 3:
            raise UserError(
                f"'mobilenet' looks at pictures, and the data has samples of shape {self.shape}: use 'images'"
            )

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each tensor, in the order in which they are used: filters, then scale and shift of its normalisation."""
        found: list[tuple[int, ...]] = [(STEM, self.shape[0], 3, 3), (STEM,), (STEM,)]
        for before, after, _ in BLOCKS:
            found += [(before, 1, 3, 3), (before,), (before,), (after, before, 1, 1), (after,), (after,)]
        return (*found, (self.classes, BLOCKS[-1][1]), (self.classes,))

    @property
    def size(self) -> int:
        """All of them: some 19,000 for ten classes."""
        return sum(math.prod(shape) for shape in self.shapes)

    def initial(self, seed: int) -> Vector:
        """Filters by He et al. (2015), scales 1, shifts 0; drawn by numpy, so that every version of PyTorch agrees."""
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
        (found,) = torch.autograd.grad(loss, flat)
        return float(loss.detach()), np.asarray(found.numpy() + np.float32(self.l2) * parameters, np.float32)

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """Part by part, without a gradient."""
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

        def convolved(found: Tensor, stride: int = 1, groups: int = 1) -> Tensor:
            filters, scale, shift = next(parts), next(parts), next(parts)
            found = functional.conv2d(found, filters, stride=stride, padding=filters.shape[-1] // 2, groups=groups)
            return functional.relu(functional.group_norm(found, len(scale) // GROUP, scale, shift))

        found = convolved(pictures, stride=2)
        for before, _, stride in BLOCKS:
            found = convolved(convolved(found, stride, groups=before))
        return functional.linear(found.mean((2, 3)), next(parts), next(parts))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("training 'mobilenet'", "frameworks") from None
    return torch
