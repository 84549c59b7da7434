"""What each configuration may do, as samples of a belief.

Symbols   S    samples          N    configurations of the space, in its order
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlcd.core.configuration import Floats
from mlcd.planners.serve.nouns import Figure


@dataclass(frozen=True)
class Draws:
    """One row for each sample: answers a second (0 where it does not run), and each figure in seconds; S x N.

    `outside`: the share of the space, 0 to 1, of which those who were seen tell nothing.
    """

    rate: Floats
    figures: Mapping[Figure, Floats]
    outside: float = 0.0
