"""Norms of gradients, in a precision that can represent their squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def norm(gradient: torch.Tensor) -> torch.Tensor:
    """|gradient|, in at least single precision."""
    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    wide = gradient.dtype if gradient.dtype in (torch.float32, torch.float64) else torch.float32
    return torch.linalg.vector_norm(gradient, dtype=wide)


def sum_of_squares(norms: Sequence[torch.Tensor]) -> torch.Tensor:
    """The squared norm of all gradients with these norms, as a tensor of one element."""
    return torch.stack(list(norms)).double().square().sum(0, keepdim=True)


def factor(scaler: Any, device: torch.device) -> torch.Tensor:
    """The factor of a GradScaler, without waiting for the device; 1 without a scaler."""
    one = torch.ones(1, dtype=torch.float64, device=device)
    return one if scaler is None else scaler.scale(one)
