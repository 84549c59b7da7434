"""A failure out of memory rules out every plan that needs at least as much of every part on a GPU with no more memory.

Plans are compared only if model, adapter, precision, attention and kernels are the same. The parts of `needed_gb` are
compared one by one, without learned factors. So the rule holds for any implementation in which larger inputs never
take less memory: larger micro-batches and sequences, less sharding, less checkpointing, fewer GPUs to share the state.

If a plan has pipeline stages, it is unknown which one ran out: each of its stages must be matched by one that needs as
much. A failure that would rule out a plan that ran must have had another cause, and rules out nothing.
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Floats, Mask
from mlcd.planners.train.plans.memory_levels import AT, Rows, Sizes

SAME_GB, SAME_SHARE = 0.05, 0.003
"""Smaller differences are ignored, such as gradients of an adapter: in GB, or this share of a very small memory."""
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
    """The compared parts: each by itself; stored activations, with checkpoints or without, as one; and gradients once
    more if they coexist with the peak of activations."""
    alone = parts[..., [AT[name] for name in COMPARED]]
    waits = parts[..., AT["stream"]] + parts[..., AT["saved"]]
    beside = parts[..., AT["held"]] * parts[..., AT["gradients"]]
    return np.concatenate([alone, waits[..., None], beside[..., None]], axis=-1)
