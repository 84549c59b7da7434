"""What a job file says of a job on functions: what is trained, what may be allocated to it, how it is tuned."""

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
    """One storage, or a list of them: 's3', [elasticache, vm-ps], 's3,vm-ps'."""
    names = [name.strip() for each in listed(written) for name in str(each).split(",")]
    for name in names:
        if name not in STORAGES:
            raise ValueError(f"'{name}': {nearest(name, STORAGES)}")
    return tuple(dict.fromkeys(names))


def memory_range(written: Any) -> tuple[int, int]:
    """'128..1769' or '512': megabytes, as functions are sold."""
    low, high = parse_range(written, 1_000 * LARGEST_MB)
    if low < SMALLEST_MB or high > LARGEST_MB:
        raise ValueError(f"'{written}': a function has {SMALLEST_MB} to {LARGEST_MB} MB, such as 512..1769")
    return low, high


def function_range(written: Any) -> tuple[int, int]:
    """'1..50' or '8': how many functions train together."""
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
    """Hyperparameter settings to begin with."""
    eta: Annotated[int, BeforeValidator(whole)] = USUAL.eta
    """One trial of so many goes on after each stage."""
    epochs_per_stage: Annotated[int, BeforeValidator(whole)] = USUAL.epochs_per_stage
    """Epochs of each trial in a stage."""
    space: Annotated[Mapping[str, tuple[float, float]], BeforeValidator(_drawn_between)] = {}
    """The ends of each hyperparameter, such as `learning_rate: [0.001, 1.0]`: drawn log-uniformly."""


class FunctionsBlock(PlannerBlock):
    """What is trained on functions, and between which ends it may be allocated.

    Sizes that are not told are those of MLCD's own models and data.
    """

    model: str
    """What is trained: lr, svm, mobilenet, or a class beside the job file as module:Class."""
    data: str
    """What it is trained on: higgs, yfcc, images, or a class of your own as module:Class."""
    batch: Annotated[int, BeforeValidator(whole)]
    """Samples that one function takes at once."""
    learning_rate: Annotated[float, BeforeValidator(parse_count)] = 0.01
    """Of plain stochastic gradient descent."""
    model_mb: Count = None
    """Megabytes of the model, to plan for one that MLCD does not have."""
    data_mb: Count = None
    """Megabytes of the data, to plan for data that MLCD does not have."""
    target: Annotated[Target | None, read(parse_target)] = None
    """What ends a training, such as loss <= 0.66."""
    functions: Annotated[tuple[int, int], BeforeValidator(function_range), such_as("1..50")] = (1, MOST_FUNCTIONS)
    """How many functions train together, such as 1..50."""
    memory: Annotated[tuple[int, int], BeforeValidator(memory_range), such_as("512..1769")] = (SMALLEST_MB, LARGEST_MB)
    """MB of each function, such as 512..1769."""
    storages: Annotated[tuple[str, ...], BeforeValidator(storage_names), Names] = STORAGES
    """Through which of these functions may exchange gradients."""
    endpoints: Annotated[Mapping[str, str], BeforeValidator(_endpoints)] = {}
    """Where a storage is reached; else it is started on this machine."""
    concurrency: Whole = None
    """Functions that the account runs at once."""
    epochs: Count = None
    """What the target is known to take; else it is found out on a sample."""
    delta: Count = None
    """How far the predicted epochs may move before it is planned again."""
    tuning: TuningBlock | None = None
    """The trials of `mlcd tune`."""

    def check(self, work: Work) -> None:
        """Epochs are counted, so an epoch must have a length."""
        if work.dataset is None:
            in_epochs = "work: on functions it is counted in epochs; say `dataset: 11M` and `epochs: 60`, at most"
            raise mistake_at(("work",), in_epochs)

    def ask(self, work: Work) -> FunctionsTask:
        """As the rest of MLCD knows it. A size of zero is still to be looked up."""
        sizes_mb = self.data_mb or 0.0, self.model_mb or 0.0
        workload = Workload(self.model, self.data, int(work.dataset or 0.0), *sizes_mb, self.batch, self.learning_rate)
        limits = self.functions, self.memory, self.storages, self.endpoints
        concurrency = int(self.concurrency) if self.concurrency is not None else None
        tuning = Tuning(**self.tuning.model_dump()) if self.tuning is not None else None
        delta = self.delta or DELTA
        return FunctionsTask(workload, *limits, concurrency, tuning=tuning, epochs=self.epochs, delta=delta)
