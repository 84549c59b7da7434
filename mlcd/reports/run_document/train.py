"""A run that finds where to train: on machines, of a fixed or an elastic job."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.reports.run_document.core import MachineLaunch, RunCore, RunDecision, RunForecast, RunTarget


class RunFinish(RunForecast):
    """What finishing the job takes on a probed configuration."""

    certifiable: bool = Field(description="Whether it can be chosen: the job ends within the limits there.")


class RunProbe(MachineLaunch):
    """A short run of the job, to measure a configuration."""

    finish: RunFinish | None = Field(description="What finishing there takes; null if it has no rate.")


class TrainRun(RunCore):
    """A run of `mlcd train` on machines."""

    planner: Literal["train"] = Field(default="train", description="The planner's name.")
    work_samples: float = Field(description="All the work of the job, in samples.")
    saved_samples: float = Field(description="Of these, what a checkpoint holds.")
    target: RunTarget | None = Field(default=None, description="The metric that ends the job.")
    probes: list[RunProbe] = Field(description="Every probe, in order.")
    decision: RunDecision | None = Field(description="What the search ended with; null while it goes on.")
    final_run: MachineLaunch | None = Field(description="The last launch of the job itself.")
    probing_usd: float = Field(description="Dollars that the probes cost.")
    probing_s: float = Field(description="Seconds that the probes took, one after the other.")


class ScaleRun(TrainRun):
    """A run of `mlcd scale`: how many workers an elastic job is given."""

    planner: Literal["scale"] = Field(default="scale", description="The planner's name.")  # type: ignore[assignment]
    mode: str = Field(description="partial, where probes are short runs of the job; or full.")
    learning_rate: str = Field(description="How the learning rate follows the batch.")
