"""A PyTorch model to measure, and building blocks of our own models.

Nothing here needs more than torch; it is imported when a model is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Module = Any
"""A torch.nn.Module, on a device."""
Tensor = Any
Feed = Callable[[int], tuple[Tensor, ...]]
"""Makes the inputs of a model for a batch on the current device."""


@dataclass(frozen=True)
class TorchModel:
    """A model by name: how it is built (random weights) and fed. `inputs`: the host's kind of request."""

    name: str
    family: str
    inputs: str
    build: Callable[[], Module]
    feed: Feed


def wired(forward: Callable[..., Tensor], **parts: Module) -> Module:
    """A module of named parts with a forward function: `forward(parts, *inputs)`."""
    from torch import nn

    class Wired(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *inputs: Tensor) -> Tensor:
            return forward(self, *inputs)

    return Wired()


def images(side: int, channels: int = 3) -> Feed:
    """Random images."""

    def feed(batch: int) -> tuple[Tensor, ...]:
        import torch

        return (torch.randn(batch, channels, side, side),)

    return feed


def vectors(*shape: int) -> Feed:
    """Random tensors of a shape."""

    def feed(batch: int) -> tuple[Tensor, ...]:
        import torch

        return (torch.randn(batch, *shape),)

    return feed


def tokens(length: int, vocabulary: int = 30_000) -> Feed:
    """Random sentences."""

    def feed(batch: int) -> tuple[Tensor, ...]:
        import torch

        return (torch.randint(0, vocabulary, (batch, length)),)

    return feed


def fields(categories: int, numbers: int, vocabulary: int) -> Feed:
    """Inputs of a recommender: categories as integers, and numbers."""

    def feed(batch: int) -> tuple[Tensor, ...]:
        import torch

        chosen = torch.randint(0, vocabulary, (batch, categories))
        return (chosen, torch.randn(batch, numbers)) if numbers else (chosen,)

    return feed
