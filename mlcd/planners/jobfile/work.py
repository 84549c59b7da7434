"""How much there is to do, and what a planner's own block of a job file is."""

from __future__ import annotations

import math
from typing import Any

from pydantic import model_validator

from mlcd.core.job import Target
from mlcd.core.payload import Ask
from mlcd.planners.jobfile.keys import Count, Keys


class Work(Keys):
    """How much there is to do."""

    samples: Count = None
    dataset: Count = None
    epochs: Count = None

    @model_validator(mode="before")
    @classmethod
    def _a_number_is_samples(cls, written: Any) -> Any:
        return written if isinstance(written, dict) else {"samples": written}

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Work:
        both = self.dataset is not None and self.epochs is not None
        if (self.samples is not None) == (self.dataset is not None or self.epochs is not None) or not (
            self.samples is not None or both
        ):
            raise ValueError("work: say either `samples: 90M`, or `dataset: 1.28M` and `epochs: 70`")
        if not math.isfinite(self.total):
            raise ValueError("work: `dataset` times `epochs` is too large to be meant")
        return self

    @property
    def total(self) -> float:
        """In samples."""
        return self.samples if self.samples is not None else (self.dataset or 0.0) * (self.epochs or 0.0)


class PlannerBlock(Keys):
    """A planner's block in `mlcd:`, under the planner's name: its keys, with their units and defaults."""

    target: Target | None = None

    def check(self, work: Work) -> None:
        """`ValueError` for what does not go together with the rest of the file."""

    def ask(self, work: Work) -> Ask:
        """As the rest of MLCD knows it."""
        raise NotImplementedError
