"""What the document of every run has, whatever planner it is of; and all that one of a job on machines has."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.core.additions import Fact, Figure, Table
from mlcd.core.part import Finite, Part, Reported

Status = Literal["searching", "decided", "infeasible", "running", "finished", "failed", "stopped"]
Knob = int | float | str | bool


class RunGoal(Part):
    """What is asked of a run: an objective, and limits over probes and the final run together."""

    objective: str = Field(description="fastest, cheapest, knee or per-dollar.")
    budget_usd: float | None = Field(description="Dollars that may be spent; null for no limit.")
    deadline_s: float | None = Field(description="Seconds that it may take; null for no limit.")
    confidence: float = Field(description="How sure a certificate has to be, between 0 and 1.")


class RunTarget(Part):
    """The metric that ends a job."""

    metric: str = Field(description="Its name, as the job reports it.")
    value: float = Field(description="The value to reach.")
    at_least: bool = Field(description="Whether larger is better.")
    words: str = Field(description="All of it, such as `accuracy >= 0.97`.")


class Machines(Part):
    """A configuration of machines."""

    instance_type: str = Field(description="The type of each machine.")
    nodes: int = Field(description="How many machines.")
    spot: bool = Field(description="Whether they are spot machines.")
    usd_per_hour: float = Field(description="Dollars an hour, all machines together.")
    batch: int | None = Field(default=None, description="The global batch, where it may vary.")
    knobs: dict[str, Knob] = Field(default={}, description="Settings of a server, or of a training plan, by name.")


class SomeFunctions(Part):
    """An allocation of serverless functions."""

    functions: int = Field(description="Functions that train together.")
    memory_mb: int = Field(description="Memory of each, in MB.")
    storage: str = Field(description="The storage through which they exchange gradients.")


class PricedFunctions(SomeFunctions):
    """An allocation with its price."""

    functions_at_once: int = Field(description="Functions of all trials that run at the same time.")
    usd_per_hour: float = Field(description="Dollars an hour, all of them together.")


Place = Machines | PricedFunctions


class RunForecast(Part):
    """What finishing the job takes somewhere, without the probes."""

    seconds: float = Field(description="Expected seconds.")
    usd: float = Field(description="Expected dollars.")
    worst_seconds: float = Field(description="Seconds that are counted on at the most.")
    worst_usd: float = Field(description="Dollars that are counted on at the most.")
    fallback: Place | None = Field(default=None, description="Where the job moves if it is too slow there.")
    on_spot: float = Field(default=0.0, description="Share of the work that is expected to be done on spot machines.")


class RunCap(Part):
    """A latency that a server has to keep."""

    figure: str = Field(description="Which latency: p50, p95, p99, ttft_p50, ttft_p95, itl_p50 or itl_p95.")
    at_most_s: Finite = Field(description="Seconds at the most; null where no number is known.")
    words: str = Field(description="All of it, such as `p95 <= 30 ms`.")


class RunRelaxation(Part):
    """Another limit, under which there would have been a decision. Null: this limit may stay as it is."""

    budget_usd: float | None = Field(description="A budget that would be enough.")
    deadline_s: float | None = Field(description="A deadline that would be enough.")
    configuration: Place | None = Field(description="What would be chosen then.")
    label: str | None = Field(description="Its name, as the trade-off has it.")
    caps: list[RunCap] = Field(default=[], description="Latencies that it would keep.")
    min_rate: float | None = Field(default=None, description="Answers a second that it would give.")
    max_probe_usd: float | None = Field(
        default=None, description="What trying it costs, where `max_probe` forbade that."
    )
    confidence: float | None = Field(default=None, description="How sure it is within the limits as they are.")


class CurvePoint(Machines):
    """What is expected of a configuration of an elastic job."""

    workers: int = Field(description="Workers of the job.")
    seconds: float | None = Field(description="Expected seconds; null where no time is claimed.")
    usd: float | None = Field(description="Expected dollars; null where no time is claimed.")
    interval_s: tuple[float, float] | None = Field(description="Between which ends it is nine times of ten.")
    time_factor: float = Field(description="Times the least time of all.")
    cost_factor: float = Field(description="Times the least cost of all.")
    measured: bool = Field(description="Whether it was probed.")
    on_boundary: bool = Field(description="Whether nothing else is both faster and cheaper.")
    knee: bool = Field(description="Whether more money buys little speed from here on.")
    chosen: bool = Field(description="Whether it is the decision.")


class RunDecision(Part):
    """What a search ended with."""

    configuration: Place | None = Field(description="What was chosen; null where nothing can be certified.")
    certified: bool = Field(description="Whether the job ends within its limits, with `confidence`.")
    confidence: float | None = Field(description="The probability of that; null where there is no limit.")
    because: str = Field(description="Why the search ended.")
    forecast: RunForecast | None = Field(description="What finishing takes there.")
    binding: str | None = Field(description="The limit that nothing keeps.")
    relaxations: list[RunRelaxation] = Field(description="Limits that would be enough, the smallest step first.")
    curve: list[CurvePoint] = Field(
        default=[], description="Of an elastic job: what is expected of each configuration."
    )


class RefusedMachines(Machines):
    """A probe on machines that the limits did not allow."""

    label: str = Field(description="Its name.")
    because: str = Field(description="Why it was refused.")


class RefusedFunctions(PricedFunctions):
    """A probe on functions that the limits did not allow."""

    label: str = Field(description="Its name.")
    because: str = Field(description="Why it was refused.")


class GradientNoise(Part):
    """How much the gradients of single samples differ."""

    scale: Reported = Field(description="The batch at which noise and signal are equal.")
    rel_error: Reported = Field(description="One standard error of its logarithm.")
    stable: bool = Field(description="Whether it has settled.")
    gamma: Reported | None = Field(description="Scavenger's measure of the same.")


class WorkMismatch(Part):
    """What a job reported beside what its `work` states."""

    reported: float = Field(description="Samples that it reported.")
    stated: float = Field(description="Samples that were stated.")


class LaunchResult(Part):
    """What one launch showed and cost."""

    outcome: str = Field(description="ok, or how it failed.")
    samples_per_s: float | None = Field(description="Its rate; null if it has none.")
    rel_error: float | None = Field(description="One standard error of the logarithm of the rate.")
    seconds: float = Field(description="How long its machines were held.")
    usd: float = Field(description="What it cost.")
    startup_s: float = Field(description="Seconds before the job began.")
    samples_done: float = Field(description="Samples of work that were done.")
    detail: str = Field(description="More of how it ended.")
    mismatch: WorkMismatch | None = Field(default=None, description="Where its reports and its `work` do not agree.")
    noise: GradientNoise | None = Field(default=None, description="Gradient noise, where the job reports it.")
    metric: Reported | None = Field(default=None, description="The last value of the job's metric.")
    memory: float | None = Field(
        default=None, description="The most of a node's or GPU's memory that it used: a share."
    )
    because: str = Field(description="Why it was made; of the job itself, why it ended.")


class MachineLaunch(LaunchResult, Machines):
    """A launch on machines."""


class RunCore(Part):
    """What every run has. The ledger alone says all of it."""

    run: str = Field(description="The run's name.")
    planner: str = Field(description="train, scale, tune, serve, or the name of a planner of another package.")
    status: Status = Field(description="Where it stands.")
    started_at: str = Field(description="When it began: a time of day, ISO 8601.")
    job: str = Field(description="The job's name.")
    goal: RunGoal = Field(description="What is asked of it.")
    on: str = Field(description="The place that its probes run at.")
    provenance: str = Field(description="live, simulated or recorded: only what is live costs money.")
    method: str = Field(description="The search method.")
    seed: int = Field(description="Of what the method draws at random.")
    configurations: int = Field(description="Configurations that could be chosen.")
    known_configurations: int = Field(description="Of these, what earlier runs have measured.")
    refused: list[RefusedMachines | RefusedFunctions] = Field(description="Probes that the limits did not allow.")
    warnings: list[str] = Field(description="What its owner was warned of.")
    spent_usd: float = Field(description="Dollars spent so far, all launches together.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")
    version: str = Field(description="The version of MLCD that began it.")
    facts: list[Fact] = Field(default=[], description="Key figures that its planner adds.")
    tables: list[Table] = Field(default=[], description="Tables that its planner adds.")
    figures: list[Figure] = Field(default=[], description="Charts that its planner adds.")


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
