"""A run that finds how to serve a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.core.part import Finite, Part
from mlcd.reports.run_document.core import Knob, RunCap, RunCore, RunDecision


class ServedModel(Part):
    """A model that is to be served."""

    name: str = Field(description="The model's name.")
    family: str = Field(description="The family of architectures that it is of.")
    inputs: str = Field(description="The kind of its input, such as image224.")
    path: str = Field(description="Its file.")
    weights_mb: float | None = Field(description="Its weights, in 2**20 bytes.")
    parameters_billion: float | None = Field(description="Its parameters, in billions.")


class OperatorShare(Part):
    """All calls of one kind of operator in a pass of a model."""

    kind: str = Field(description="The operator.")
    count: int = Field(description="Its calls in one pass.")
    share: float = Field(description="Its share of the time of a pass, between 0 and 1.")


class LoadTest(Part):
    """What load tests showed of a configuration, and whether it keeps what is asked."""

    knobs: dict[str, Knob] = Field(description="Settings of the server, by name.")
    usd_per_hour: float = Field(description="Dollars an hour.")
    outcome: str = Field(description="ok, or how it failed.")
    rate: float | None = Field(description="Answers a second; null if it failed.")
    rel_error: float | None = Field(description="One standard error of the logarithm of the rate.")
    figures: dict[str, Finite] | None = Field(description="Latencies in seconds, by name: p50, p95, ttft_p95 ...")
    high: dict[str, Finite] | None = Field(description="The upper ends of their intervals: certificates count on them.")
    peak_gb: float | None = Field(description="The most memory that the server held.")
    requests: int | None = Field(description="Requests that were sent.")
    failures: int | None = Field(description="Requests that failed.")
    value: float = Field(description="How good it is by the run's objective; larger is better.")
    keeps: bool = Field(description="Whether it keeps what is asked, as measured.")
    certified: bool = Field(description="Whether also the unlucky ends of its intervals do.")
    usd_per_million: float | None = Field(description="Dollars for a million answers.")
    seconds: float = Field(description="How long it took.")
    usd: float = Field(description="What it cost.")
    detail: str = Field(description="More of how it ended.")
    server: str | None = Field(default=None, description="The server and its version; null for MLCD's own.")


class RunTrial(LoadTest):
    """One load test."""

    number: int = Field(description="Its place in the order of trials, from 1 on.")
    label: str = Field(description="The name of its configuration.")
    because: str = Field(description="Why it was made.")
    breaks: list[str] = Field(description="What it does not keep, in words.")
    chosen: bool = Field(description="Whether it measured the decision.")


class ServeDecision(RunDecision):
    """What a search for a serving configuration ended with."""

    measured: LoadTest | None = Field(default=None, description="What all trials of it show together.")
    accuracy: str | None = Field(
        default=None, description="What is known of its answers; null where the model is served as it is."
    )


class RunAgreement(Part):
    """How far int8 agrees with the model itself, on samples of the user's."""

    share: float = Field(description="1 where every answer agrees.")
    samples: int = Field(description="Samples that were compared.")
    measure: str = Field(description="top class, cosine, or relative error (then the share is 1 minus it).")
    least: float = Field(description="With less, int8 is not tried.")


class ServeRun(RunCore):
    """A run of `mlcd serve`: it ends with its decision."""

    planner: Literal["serve"] = Field(default="serve", description="The planner's name.")
    model: ServedModel = Field(description="What is served.")
    caps: list[RunCap] = Field(description="Latencies that are asked for.")
    min_rate: float | None = Field(description="Answers a second that are asked for.")
    counted: str = Field(description="What a rate counts: requests or tokens.")
    unit: str = Field(description="The unit of a rate.")
    arrivals: str = Field(description="How trials send requests: open or closed.")
    most_trials: int | None = Field(description="Trials at the most.")
    target: str | None = Field(default=None, description="Where it will be deployed, if trials ran on that server.")
    agreement: RunAgreement | None = Field(default=None, description="Of int8; null where nothing was compared.")
    operators: list[OperatorShare] = Field(description="What a pass is made of, the longest first.")
    trials: list[RunTrial] = Field(description="Every trial, in order.")
    decision: ServeDecision | None = Field(description="What the search ended with; null while it goes on.")
