"""How close a job comes to the wall of its GPU's memory, by what PyTorch counts itself."""

from __future__ import annotations

from typing import Any


def used_share(torch: Any) -> float | None:
    """The largest share of the GPU's memory that tensors and what is beside them have taken; None without a GPU.

    What the allocator keeps for later is not counted: it is given back before a job runs out. `torch`: the module,
    where the job has imported it.
    """
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        free, total = torch.cuda.mem_get_info()
        beside = total - free - torch.cuda.memory_reserved()  # the context, NCCL, other processes
        return float((torch.cuda.max_memory_allocated() + beside) / total)
    except (AttributeError, RuntimeError):  # it is still being imported, or its GPU is lost: the job will say so
        return None
