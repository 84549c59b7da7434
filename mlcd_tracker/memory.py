"""Peak share of the GPU's memory that a PyTorch job uses."""

from __future__ import annotations

from typing import Any


def used_share(torch: Any) -> float | None:
    """Peak share of the GPU's memory taken by tensors and by everything outside PyTorch; None without a GPU.

    Memory that the allocator only caches is not counted, since it is released before a job runs out. `torch`: the
    module, if the job has imported it.
    """
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        free, total = torch.cuda.mem_get_info()
        beside = total - free - torch.cuda.memory_reserved()  # the context, NCCL, other processes
        return float((torch.cuda.max_memory_allocated() + beside) / total)
    except (AttributeError, RuntimeError):  # torch is still being imported, or its GPU is lost: the job will notice
        return None
