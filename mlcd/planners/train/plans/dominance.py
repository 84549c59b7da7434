"""What ran out of memory rules out every plan that needs at least as much of each part on a GPU with no more memory.

Of the same model, trained in the same way (adapter, precision, attention, kernels), parts of `needed_gb` tell, one by
one, and no level is asked. So it holds whatever an implementation makes of each part, as long as it makes no less of
more: larger micro-batches and sequences, less sharding, less checkpointing, fewer GPUs to share the state.

A run with pipeline stages ran out of memory on one of them, nobody knows which: each of its stages must be matched by
one that needs as much. A failure that would rule out a plan that ran had another cause, and rules out nothing.
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Floats, Mask
from mlcd.planners.train.plans.memory_levels import AT, Rows, Sizes

SAME_GB, SAME_SHARE = 0.05, 0.003
"""Less is no difference: gradients of an adapter, say. On what has less memory than usual GPUs, this share of it."""
COMPARED = ("weights", "gradients", "optimizer", "plain", "logits", "layer", "layer_plain", "head", "framework")


def too_large(sizes: Sizes, ran: Rows, out_of_memory: Rows) -> Mask:
    """Which candidates cannot fit, by the rows that ran and those that ran out of memory."""
    excluded = np.zeros(len(sizes.room), dtype=bool)
    for failed in out_of_memory:
        comparable = np.flatnonzero((sizes.way == sizes.way[failed]) & (sizes.room <= sizes.room[failed]))
        stages, same = _compared(sizes.parts[:, comparable]), min(SAME_GB, SAME_SHARE * sizes.room[failed])
        matched = [(stages >= stage - same).all(axis=2).any(axis=0) for stage in _compared(sizes.parts[:, failed])]
        larger = comparable[np.logical_and.reduce(matched)]
        if not np.isin(larger, ran).any():
            excluded[larger] = True
    return excluded


def _compared(parts: Floats) -> Floats:
    """Each by itself; what waits with checkpoints or without is one; gradients again, if they are there meanwhile."""
    alone = parts[..., [AT[name] for name in COMPARED]]
    waits = parts[..., AT["stream"]] + parts[..., AT["saved"]]
    beside = parts[..., AT["held"]] * parts[..., AT["gradients"]]
    return np.concatenate([alone, waits[..., None], beside[..., None]], axis=-1)
