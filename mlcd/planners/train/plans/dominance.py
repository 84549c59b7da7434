"""What ran out of memory rules out every plan that needs at least as much of each part on a GPU with no more memory.

Of the same model, trained in the same way (adapter, precision, attention, kernels), parts of `needed_gb` tell, one by
one, and no level is asked. So it holds whatever an implementation makes of each part, as long as it makes no less of
more: larger micro-batches and sequences, less sharding, less checkpointing, fewer GPUs to share the state.

A run with pipeline stages ran out of memory on one of them, nobody knows which: each of its stages must be matched by
one that needs as much. A failure that would rule out a plan that ran had another cause, and rules out nothing.
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Mask
from mlcd.planners.train.plans.memory_levels import Rows, Sizes


def too_large(sizes: Sizes, ran: Rows, out_of_memory: Rows) -> Mask:
    """Which candidates cannot fit, by the rows that ran and those that ran out of memory."""
    excluded = np.zeros(len(sizes.room), dtype=bool)
    for failed in out_of_memory:
        comparable = np.flatnonzero((sizes.way == sizes.way[failed]) & (sizes.room <= sizes.room[failed]))
        stages = sizes.parts[:, comparable]
        matched = [(stages >= stage).all(axis=2).any(axis=0) for stage in sizes.parts[:, failed]]
        larger = comparable[np.logical_and.reduce(matched)]
        if not np.isin(larger, ran).any():
            excluded[larger] = True
    return excluded
