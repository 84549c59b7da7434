"""The `functions:` block of a job file: what is trained, which allocations are allowed, how it is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from mlcd.core.errors import nearest
from mlcd.core.job import Target, parse_target
from mlcd.core.units import parse_count, parse_range
from mlcd.planners.functions.nouns import DELTA, FunctionsTask, Tuning
from mlcd.planners.functions.workload import LARGEST_MB, MOST_FUNCTIONS, SMALLEST_MB, STORAGES, Workload
from mlcd.planners.jobfile.keys import (
    Count,
    Keys,
    Names,
    PlannerBlock,
    Whole,
    Work,
    listed,
    mistake_at,
    read,
    such_as,
    whole,
)

USUAL = Tuning(1)


def storage_names(written: Any) -> tuple[str, ...]:
    """Parse one storage or a list of them: 's3', [elasticache, vm-ps], 's3,vm-ps'."""
    names = [name.strip() for each in listed(written) for name in str(each).split(",")]
    for name in names:
        if name not in STORAGES:
            raise ValueError(f"'{name}': {nearest(name, STORAGES)}")
    return tuple(dict.fromkeys(names))


def memory_range(written: Any) -> tuple[int, int]:
    """Parse '128..1769' or '512': megabytes of a function's memory."""
    low, high = parse_range(written, 1_000 * LARGEST_MB)
    if low < SMALLEST_MB or high > LARGEST_MB:
        raise ValueError(f"'{written}': a function has {SMALLEST_MB} to {LARGEST_MB} MB, such as 512..1769")
    return low, high


def function_range(written: Any) -> tuple[int, int]:
    """Parse '1..50' or '8': how many functions train together."""
    low, high = parse_range(written, 1_000 * MOST_FUNCTIONS)
    if high > MOST_FUNCTIONS:
        raise ValueError(f"'{written}': at most {MOST_FUNCTIONS:,} functions run at once, such as 1..{MOST_FUNCTIONS}")
    return low, high


def _endpoints(written: Any) -> dict[str, str]:
    if not isinstance(written, dict):
        raise ValueError(f"'{written}': expected a URL for each storage, such as `elasticache: redis://localhost:6379`")
    return {storage_names(name)[0]: str(url) for name, url in written.items()}


def _drawn_between(written: Any) -> dict[str, tuple[float, float]]:
    expected = f"'{written}': expected the ends of each hyperparameter, such as `learning_rate: [0.001, 1.0]`"
    if not isinstance(written, dict):
        raise ValueError(expected)
    ends = {}
    for name, pair in written.items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(expected)
        low, high = parse_count(pair[0]), parse_count(pair[1])
        if low > high:
            raise ValueError(f"'{name}: {pair}': the smaller end comes first")
        ends[str(name)] = (low, high)
    return ends


class TuningBlock(Keys):
    """A hyperparameter search by successive halving."""

    trials: Annotated[int, BeforeValidator(whole)]
    """Hyperparameter settings in the first stage."""
    eta: Annotated[int, BeforeValidator(whole)] = USUAL.eta
    """One of so many trials continues after each stage."""
    epochs_per_stage: Annotated[int, BeforeValidator(whole)] = USUAL.epochs_per_stage
    """Epochs of each trial in a stage."""
    space: Annotated[Mapping[str, tuple[float, float]], BeforeValidator(_drawn_between)] = {}
    """Lowest and highest value of each hyperparameter, such as `learning_rate: [0.001, 1.0]`: drawn log-uniformly."""


class FunctionsBlock(PlannerBlock):
    """What is trained on functions, and which allocations are allowed.

    Sizes that are not stated are those of MLCD's own models and data.
    """

    model: str
    """What is trained: lr, svm, mobilenet, or a class beside the job file as module:Class."""
    data: str
    """What it is trained on: higgs, yfcc, images, or a class of your own as module:Class."""
    batch: Annotated[int, BeforeValidator(whole)]
    """Samples of one function in an iteration."""
    learning_rate: Annotated[float, BeforeValidator(parse_count)] = 0.01
    """Learning rate of plain stochastic gradient descent."""
    model_mb: Count = None
    """Megabytes of the model, to plan for a model that MLCD does not have."""
    data_mb: Count = None
    """Megabytes of the data, to plan for data that MLCD does not have."""
    target: Annotated[Target | None, read(parse_target)] = None
    """What ends a training, such as loss <= 0.66."""
    functions: Annotated[tuple[int, int], BeforeValidator(function_range), such_as("1..50")] = (1, MOST_FUNCTIONS)
    """How many functions train together, such as 1..50."""
    memory: Annotated[tuple[int, int], BeforeValidator(memory_range), such_as("512..1769")] = (SMALLEST_MB, LARGEST_MB)
    """MB of each function, such as 512..1769."""
    storages: Annotated[tuple[str, ...], BeforeValidator(storage_names), Names] = STORAGES
    """The storages through which functions may exchange gradients."""
    endpoints: Annotated[Mapping[str, str], BeforeValidator(_endpoints)] = {}
    """The URL of each storage; a storage without one is started on this machine."""
    concurrency: Whole = None
    """Functions that the account runs at once."""
    epochs: Count = None
    """Epochs that the target is known to need; without it they are estimated from a sample."""
    delta: Count = None
    """The relative change of the predicted epochs that makes MLCD plan again."""
    tuning: TuningBlock | None = None
    """The trials of `mlcd tune`."""

    def check(self, work: Work) -> None:
        """Check that the dataset's size is stated, since epochs are counted."""
        if work.dataset is None:
            in_epochs = "work: on functions it is counted in epochs; say `dataset: 11M` and `epochs: 60`, at most"
            raise mistake_at(("work",), in_epochs)

    def ask(self, work: Work) -> FunctionsTask:
        """The task of this block. A size of zero is looked up later."""
        sizes_mb = self.data_mb or 0.0, self.model_mb or 0.0
        workload = Workload(self.model, self.data, int(work.dataset or 0.0), *sizes_mb, self.batch, self.learning_rate)
        limits = self.functions, self.memory, self.storages, self.endpoints
        concurrency = int(self.concurrency) if self.concurrency is not None else None
        tuning = Tuning(**self.tuning.model_dump()) if self.tuning is not None else None
        delta = self.delta or DELTA
        return FunctionsTask(workload, *limits, concurrency, tuning=tuning, epochs=self.epochs, delta=delta)
