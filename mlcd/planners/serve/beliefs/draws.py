"""What each configuration may do, as samples of a belief, and the signature of what draws them.

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
    """One row for each sample: answers a second (0 where it does not run), and each figure in seconds; S x N.

    `outside`: the share of the space, 0 to 1, of which those who were seen tell nothing.
    """

    rate: Floats
    figures: Mapping[Figure, Floats]
    outside: float = 0.0


Belief = Callable[[Knowledge, Job, Space, History, int, np.random.Generator], Draws]
"""Draws so many samples of what each configuration does, by what seen models tell and by all that was measured."""


def shares(log_chances: Sequence[float] | Floats, count: int, rng: np.random.Generator) -> list[int]:
    """How many of so many samples each of some beliefs gives: drawn by their chances, up to a constant."""
    chances = np.exp(np.array(log_chances) - max(log_chances))
    return [int(share) for share in rng.multinomial(count, chances / chances.sum())]
