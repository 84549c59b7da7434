"""Tell all PyTorch workers in the same step that the job should save and leave, whatever wraps their network."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

import mlcd_tracker
from mlcd_tracker.measurement_schedule import AGREE_S

MOST_STEPS = 1_000
"""Most steps between two exchanges, in case the first step was unusually fast."""


class Leaving:
    """Call `now()` after every step in every worker; they exchange messages about four times a second.

    With DistributedDataParallel, `NoiseMeter.step` does the same and measures the noise, too.
    """

    def __init__(self) -> None:
        self._ahead = self._since = 1
        self._exchanged_s = time.perf_counter()

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
        steps = int(AGREE_S * self._since / max(1e-9, now_s - self._exchanged_s))
        # Only rank 0 knows whether to leave, and only its clock counts.
        message = [float(mlcd_tracker.leaving()), float(min(MOST_STEPS, max(1, steps)))]
        device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else "cpu"
        numbers = torch.tensor(message if dist.get_rank() == 0 else [0.0, 0.0], device=device)
        dist.all_reduce(numbers)
        leave, wait = numbers.tolist()
        self._ahead = self._since = round(wait)
        self._exchanged_s = now_s
        return bool(leave)
