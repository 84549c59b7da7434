"""Whether MLCD wants a job elsewhere, heard by all PyTorch workers in the same step, whatever wraps their network."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

import mlcd_tracker
from mlcd_tracker.rhythm import AGREE_S

MOST_STEPS = 1_000
"""Between two exchanges: a first step may have been uncommonly quick."""


class Leaving:
    """Asked after every step, by every worker; they talk to each other about four times a second.

    For DistributedDataParallel, `NoiseMeter.step` says the same and measures the noise too.
    """

    def __init__(self) -> None:
        self._ahead = self._since = 1
        self._told_s = time.perf_counter()

    def now(self) -> bool:
        """Whether to save and leave; the same in all workers."""
        if not mlcd_tracker.inside():
            return False
        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
            return mlcd_tracker.leaving()
        self._ahead -= 1
        return self._ahead <= 0 and self._exchange()

    def _exchange(self) -> bool:
        now_s = time.perf_counter()
        steps = int(AGREE_S * self._since / max(1e-9, now_s - self._told_s))
        # Only rank 0 hears of leaving, and only its clock counts.
        said = [float(mlcd_tracker.leaving()), float(min(MOST_STEPS, max(1, steps)))]
        device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else "cpu"
        numbers = torch.tensor(said if dist.get_rank() == 0 else [0.0, 0.0], device=device)
        dist.all_reduce(numbers)
        leave, wait = numbers.tolist()
        self._ahead = self._since = round(wait)
        self._told_s = now_s
        return bool(leave)
