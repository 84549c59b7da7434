"""Samples of a belief about the performance of each configuration, and the signature of functions that draw them.

Symbols   S    samples          N    configurations of the space, in its order
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.nouns import Figure


@dataclass(frozen=True)
class Draws:
    """One row per sample (S x N): answers a second, 0 if it does not run, and each figure in seconds.

    `outside`: the share of the space, 0 to 1, about which the seen models say nothing.
    """

    rate: Floats
    figures: Mapping[Figure, Floats]
    outside: float = 0.0


Belief = Callable[[Knowledge, Job, Space, History, int, np.random.Generator], Draws]
"""Draws samples of the performance of each configuration, given the seen models and the trials so far."""


def shares(log_chances: Sequence[float] | Floats, count: int, rng: np.random.Generator) -> list[int]:
    """Split `count` samples at random among beliefs by their probabilities (logs, up to a constant)."""
    chances = np.exp(np.array(log_chances) - max(log_chances))
    return [int(share) for share in rng.multinomial(count, chances / chances.sum())]
