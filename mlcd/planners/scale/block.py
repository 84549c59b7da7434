"""The `scale:` block of a job file: the target that ends the job, and what may change while it runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from mlcd.core.job import Target, parse_target
from mlcd.core.units import parse_batches, parse_range, parse_usd
from mlcd.planners.jobfile.keys import Count, Gigabytes, Keys, PlannerBlock, Work, one_of, read, such_as
from mlcd.planners.scale.nouns import LearningRate, Mode, ScalingTask, UnitPrice

DEFAULT = ScalingTask()


class UnitPriceBlock(Keys):
    """Dollars an hour for a CPU and for a GB of memory, and the memory that a node needs."""

    cpu: Annotated[float, BeforeValidator(parse_usd)]
    """Dollars for a CPU, an hour."""
    gb: Annotated[float, BeforeValidator(parse_usd)]
    """Dollars for a GB of memory, an hour."""
    base: Gigabytes = 1.0
    """Memory that a node needs in any case."""
    per_sample: Gigabytes = None
    """Additional memory for each sample of its share of the batch."""

    @property
    def settings(self) -> UnitPrice:
        """The settings of the block, as used by the planner."""
        return UnitPrice(self.cpu, self.gb, self.base or 0.0, self.per_sample or 0.0)


class ScaleBlock(PlannerBlock):
    """What may change while the job runs, and how to search it."""

    workers: Annotated[tuple[int, int], BeforeValidator(parse_range), such_as("1..8")] = DEFAULT.workers
    """How many workers, all nodes together, such as 1..8."""
    batch: Annotated[tuple[int, ...], BeforeValidator(parse_batches), such_as("256..2048")] = DEFAULT.batches
    """Allowed global batches: 256..2048 means 256, 512, 1024, 2048; 96,192 is a list."""
    target: Annotated[Target | None, read(parse_target)] = None
    """The metric that ends the job, such as accuracy >= 75 %. Needed with several batches."""
    search: Annotated[Mode, one_of(Mode)] = DEFAULT.mode
    """Probe every configuration, a few extreme ones, or none."""
    learning_rate: Annotated[LearningRate, one_of(LearningRate)] = DEFAULT.learning_rate
    """How the learning rate follows the batch. MLCD passes it to the script, which applies it."""
    epochs: Count = None
    """Epochs that an earlier run needed to the target, with the batch of `mlcd.batch`."""
    price: UnitPriceBlock | None = None
    """Pay by CPU and GB instead of by node."""

    def ask(self, work: Work) -> ScalingTask:
        """The settings of the block, as used by the planner."""
        price = self.price.settings if self.price is not None else None
        return ScalingTask(self.workers, self.batch, self.search, self.learning_rate, self.epochs, price)
