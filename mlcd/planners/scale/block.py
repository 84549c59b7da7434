"""What a job file says to `mlcd scale`: the target that ends the job, and what may change while it runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from mlcd.core.job import Target, parse_target
from mlcd.core.units import parse_batches, parse_range, parse_usd
from mlcd.planners.jobfile.keys import Count, Gigabytes, Keys, PlannerBlock, Work, one_of, read
from mlcd.planners.scale.nouns import LearningRate, Mode, ScalingTask, UnitPrice

DEFAULT = ScalingTask()


class UnitPriceBlock(Keys):
    """Dollars an hour for a CPU and for a GB of memory, and the memory that a node needs."""

    cpu: Annotated[float, BeforeValidator(parse_usd)]
    gb: Annotated[float, BeforeValidator(parse_usd)]
    base: Gigabytes = 1.0
    per_sample: Gigabytes = None

    @property
    def settings(self) -> UnitPrice:
        """As the rest of MLCD knows it."""
        return UnitPrice(self.cpu, self.gb, self.base or 0.0, self.per_sample or 0.0)


class ScaleBlock(PlannerBlock):
    """What may change while the job runs, and how it is found out."""

    workers: Annotated[tuple[int, int], BeforeValidator(parse_range)] = DEFAULT.workers
    batch: Annotated[tuple[int, ...], BeforeValidator(parse_batches)] = DEFAULT.batches
    target: Annotated[Target | None, read(parse_target)] = None
    search: Annotated[Mode, one_of(Mode)] = DEFAULT.mode
    learning_rate: Annotated[LearningRate, one_of(LearningRate)] = DEFAULT.learning_rate
    epochs: Count = None
    price: UnitPriceBlock | None = None

    def ask(self, work: Work) -> ScalingTask:
        """As the rest of MLCD knows it."""
        price = self.price.settings if self.price is not None else None
        return ScalingTask(self.workers, self.batch, self.search, self.learning_rate, self.epochs, price)
