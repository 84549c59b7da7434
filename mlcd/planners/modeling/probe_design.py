"""Where to measure step times when only a few may be measured.

Scavenger measures the corners of the (K, B) rectangle. On real clusters most of it does not fit memory, and the step
from one node to two is a jump, so corners mislead: three levels of nodes, in local batch, tell more
(docs/methods/scavenger.md). Then the choice itself is measured, and made again.

Symbols   K  nodes    b  local batch
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.job import Objective
from mlcd.planners.modeling.tradeoff import choose


def first_probes(nodes: Floats, local_batch: Floats) -> list[int]:
    """Fewest nodes at both ends of b (computing), middle nodes at the smallest (synchronising), most nodes between."""
    levels = np.unique(nodes)
    few, between, many = (_by_batch(nodes, local_batch, k) for k in (levels[0], levels[len(levels) // 2], levels[-1]))
    return list(dict.fromkeys([few[0], few[-1], between[0], many[len(many) // 2]]))


def corner_probes(nodes: Floats, global_batch: Floats) -> list[int]:
    """Scavenger's: the smallest and largest batch on the fewest and on the most nodes, as far as they exist."""
    few, many = (_by_batch(nodes, global_batch, k) for k in (np.min(nodes), np.max(nodes)))
    return list(dict.fromkeys([few[0], few[-1], many[0], many[-1]]))


def verified_choice(seconds: Floats, usd: Floats, objective: Objective, probed: Sequence[int]) -> int:
    """The choice, if it was measured; else the measured one that comes nearest to it."""
    best = choose(seconds, usd, objective)
    assert best is not None, "without limits there is always a choice"
    if best in probed:
        return best
    at = np.array(probed)
    slower, dearer = seconds[at] / seconds[best], usd[at] / usd[best]
    if objective is Objective.KNEE:
        return int(at[np.argmin(np.maximum(slower, dearer))])
    return int(at[np.argmin(slower if objective is Objective.FASTEST else dearer)])


def _by_batch(nodes: Floats, batch: Floats, level: float) -> list[int]:
    at = np.flatnonzero(nodes == level)
    return [int(i) for i in at[np.argsort(batch[at], kind="stable")]]
