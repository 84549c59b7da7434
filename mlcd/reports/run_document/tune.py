"""A run on serverless functions: hyperparameters that are tuned in stages, or one model that is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.core.part import Finite, Part
from mlcd.reports.run_document.core import RunCore, RunDecision, RunTarget, SomeFunctions


class RunWorkload(Part):
    """What is trained, and how large it is."""

    model: str = Field(description="The model.")
    data: str = Field(description="The data set.")
    samples: int = Field(description="Samples of the data set.")
    data_mb: float = Field(description="Megabytes of data.")
    model_mb: float = Field(description="Megabytes of the model.")
    batch: int = Field(description="Samples that one function takes in an iteration.")
    learning_rate: float = Field(description="The learning rate.")


class RunTuning(Part):
    """A search of hyperparameters by successive halving."""

    trials: int = Field(description="Trials of the first stage.")
    eta: int = Field(description="Each stage keeps one trial of so many.")
    epochs_per_stage: int = Field(description="Epochs of each trial in a stage.")
    stages: int = Field(description="How many stages there are.")
    space: dict[str, tuple[float, float]] = Field(description="The ends of each hyperparameter.")


class FunctionLimits(Part):
    """Between which ends functions may be allocated."""

    functions: tuple[int, int] = Field(description="Functions that train together.")
    memory_mb: tuple[int, int] = Field(description="Memory of each, in MB.")
    storages: list[str] = Field(description="Storages through which they may exchange gradients.")
    concurrency: int | None = Field(description="Functions that the account lets run at once.")
    memory_at_once_mb: int | None = Field(description="Memory of all functions together.")


class StoragePrice(Part):
    """What a storage costs."""

    usd_per_request: float = Field(description="Dollars for a request.")
    usd_per_minute: float = Field(description="Dollars for a minute that its server is up.")
    largest_mb: Finite = Field(description="The largest object, in MB; null for no limit.")


class FunctionPrices(Part):
    """What functions and storages cost."""

    cloud: str = Field(description="The cloud that asks these prices.")
    region: str = Field(description="Its region.")
    date: str = Field(description="When they were read.")
    source: str = Field(description="Where they were read.")
    usd_per_gb_s: float = Field(description="Dollars for a function with 1 GB, a second.")
    usd_per_call: float = Field(description="Dollars for a call.")
    storages: dict[str, StoragePrice] = Field(description="Storages, by name.")


class AllocatedStage(SomeFunctions):
    """A stage of a plan: what each trial is given, and what all take together."""

    stage: int = Field(description="Its number, from 1 on.")
    trials: int = Field(description="Trials of the stage.")
    epochs: int = Field(description="Epochs of each trial.")
    seconds: float = Field(description="Expected seconds of the stage.")
    usd: float = Field(description="Expected dollars of the stage.")


class FunctionPlan(Part):
    """The plan of one method."""

    name: str = Field(description="What the method is called in a chart.")
    method: str = Field(description="The method.")
    chosen: bool = Field(description="Whether it is the decision.")
    certified: bool = Field(description="Whether it ends within the limits; only the chosen one can be.")
    numbers: Literal["modelled", "predicted"] = Field(description="predicted, where its model was calibrated.")
    seconds: float = Field(description="Expected seconds of all stages.")
    usd: float = Field(description="Expected dollars of all stages.")
    stages: list[AllocatedStage] = Field(description="One after the other.")


class EpochAllocation(SomeFunctions):
    """What one epoch of one trial takes on an allocation that nothing beats in both time and cost."""

    label: str = Field(description="Its name.")
    seconds: float = Field(description="Expected seconds.")
    usd: float = Field(description="Expected dollars.")
    knee: bool = Field(description="Whether more money buys little speed from here on.")
    used: bool = Field(description="Whether the chosen plan has it.")


class ComputeSpeed(Part):
    """How fast functions of one size are."""

    memory_mb: float = Field(description="Memory of a function, in MB.")
    s_per_mb: float = Field(description="Seconds to work through a megabyte.")


class ExchangeTime(Part):
    """How long functions take to exchange a gradient."""

    functions: int = Field(description="How many take part.")
    seconds: float = Field(description="What one exchange took.")


class StorageSpeed(Part):
    """How fast a storage is."""

    latency_s: float = Field(description="Seconds of a request.")
    mb_per_s: float = Field(description="Megabytes a second.")
    exchanges: list[ExchangeTime] = Field(description="Exchanges that were measured.")


class PlatformCalibration(Part):
    """What is known of the platform, and whether it was measured."""

    numbers: Literal["modelled", "measured"] = Field(description="Whether it was measured.")
    source: str = Field(description="Who says so.")
    rel_error: float = Field(description="One standard error of the logarithm of a time that it predicts.")
    compute: list[ComputeSpeed] = Field(description="By memory.")
    load_mb_per_s: float = Field(description="Megabytes a second at which data is read.")
    start_s: float = Field(description="Seconds until a call is up.")
    start_s_per_function: float = Field(description="More seconds for each function.")
    storages: dict[str, StorageSpeed] = Field(description="Storages, by name.")


class FunctionPlans(Part):
    """Plans, and what they rest on."""

    words: str = Field(description="The decision in a sentence.")
    plans: list[FunctionPlan] = Field(description="Every plan that keeps the limits, the chosen one first.")
    calibration: PlatformCalibration | None = Field(description="What the plans rest on.")


class TuneDecision(RunDecision, FunctionPlans):
    """What a search for allocations ended with."""


class TransferTime(Part):
    """One object that was sent."""

    mb: float = Field(description="Megabytes.")
    seconds: float = Field(description="What it took.")


class CalibrationResult(Part):
    """What a calibration probe has measured."""

    s_per_mb: float = Field(description="Seconds to work through a megabyte.")
    load_mb_per_s: float = Field(description="Megabytes a second at which data is read.")
    start_s: float = Field(description="Seconds from the call until the last function was up.")
    sync_s: float = Field(description="Seconds of one exchange between all functions.")
    transfers: list[TransferTime] = Field(description="Single objects.")


class FunctionProbe(SomeFunctions):
    """A calibration probe, or a sample of the training."""

    outcome: str = Field(description="ok, or how it failed.")
    seconds: float = Field(description="How long it took.")
    usd: float = Field(description="What it cost.")
    calibrated: CalibrationResult | None = Field(description="What it measured of the platform.")
    losses: list[Finite] = Field(description="The loss after each epoch of a sample.")
    detail: str = Field(description="More of how it ended.")
    because: str = Field(description="Why it was made.")


class StageResult(SomeFunctions):
    """A stage of a tuning run as it went, beside its plan."""

    stage: int = Field(description="Its number, from 1 on.")
    trials: int = Field(description="Trials of the stage.")
    trials_told: int = Field(description="Trials that have reported anything.")
    kept: int | None = Field(description="Trials that go on; null while that is not known.")
    epochs: int = Field(description="Epochs of each trial.")
    best_trial: int | None = Field(description="The best trial at its end.")
    best_loss: Finite = Field(description="The loss of that trial.")
    seconds: float = Field(description="How long it took.")
    usd: float = Field(description="What it cost.")
    planned_s: float | None = Field(description="Seconds that were planned.")
    planned_usd: float | None = Field(description="Dollars that were planned.")
    retries: int = Field(description="Attempts of functions that came to nothing.")
    launches: list[str] = Field(description="How each of its launches ended.")


class EpochResult(SomeFunctions):
    """An epoch of a training run as it went; without a number, a launch that broke: it has no other parts either."""

    epoch: int | None = Field(description="Its number, from 1 on.")
    loss: Finite = Field(description="The loss at its end.")
    seconds: float = Field(description="How long it took.")
    usd: float = Field(description="What it cost.")
    outcome: str = Field(description="How its launch ended.")
    detail: str = Field(description="More of how it ended.")
    trial: int | None = Field(default=None, description="The trial that it is of.")
    start_s: float | None = Field(default=None, description="Seconds until the slowest function was up.")
    load_s: float | None = Field(default=None, description="Seconds to read the data.")
    compute_s: float | None = Field(default=None, description="Seconds of computing.")
    sync_s: float | None = Field(default=None, description="Seconds of exchanging gradients.")
    function_s: float | None = Field(default=None, description="Seconds that are billed, all functions together.")
    requests: int | None = Field(default=None, description="Requests to the storage.")
    retries: int | None = Field(default=None, description="Attempts of functions that came to nothing.")


class BestTrial(Part):
    """The trial that a tuning run has found."""

    trial: int = Field(description="Its number.")
    loss: Finite = Field(description="Its last loss.")
    hyperparameters: dict[str, float] = Field(description="Its hyperparameters, by name.")


class TrialResult(Part):
    """A trial of a tuning run as it went."""

    trial: int = Field(description="Its number.")
    hyperparameters: dict[str, float] = Field(description="What was drawn for it, by name.")
    losses: list[Finite] = Field(description="Its loss after each stage; null where it diverged.")
    epochs: int = Field(description="Epochs that it has done.")
    stopped: bool = Field(description="Whether others went on instead.")
    best: bool = Field(description="Whether it is the best so far.")


class FunctionsJob(Part):
    """A job on functions."""

    workload: RunWorkload = Field(description="What is trained.")
    phase: Literal["training", "tuning"] = Field(description="Whether one model is trained, or many trials are.")
    tuning: RunTuning | None = Field(description="How hyperparameters are searched; null of a training run.")
    limits: FunctionLimits = Field(description="What may be allocated.")
    prices: FunctionPrices | None = Field(description="What that costs.")


class TuneRun(RunCore, FunctionsJob):
    """A run on functions: of `mlcd tune`, or of `mlcd train --on functions`."""

    planner: Literal["tune"] = Field(default="tune", description="The planner's name.")
    target: RunTarget | None = Field(default=None, description="The metric that ends the job.")
    probes: list[FunctionProbe] = Field(description="Every probe, in order.")
    decision: TuneDecision | None = Field(description="What the search ended with; null while it goes on.")
    boundary: list[EpochAllocation] = Field(description="The best trade-offs of one epoch, the fastest first.")
    stages: list[StageResult] = Field(description="Of a tuning run: its stages as they went.")
    epochs: list[EpochResult] = Field(description="Of a training run: its epochs as they went.")
    best: BestTrial | None = Field(description="The best trial.")
    trials: list[TrialResult] = Field(
        default=[], description="Of a tuning run: trials that have reported, the furthest and best first, 200 at most."
    )
    ended: str | None = Field(description="Why the run ended; null while it goes on.")
    probing_usd: float = Field(description="Dollars that the probes cost.")
    probing_s: float = Field(description="Seconds that the probes took, one after the other.")
