"""The protocol of everything that tells what a served model may do, before and after some trials."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.serve.beliefs.draws import Draws


class Belief(Protocol):
    """A belief about every configuration of a space, as samples that agree with what was measured."""

    def draw(self, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
        """So many samples of what each configuration does."""
        ...
