"""The results of the MCP tools: few fields, each with a description that the assistant reads."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field


class Allowance(BaseModel):
    """What this agent may do."""

    may: Literal["look", "probe", "launch"] = Field(description="Its permission, set by whoever started the server.")
    words: str = Field(description="The permission in a sentence.")
    left_usd: float | None = Field(description="Dollars that it may still spend over all its runs; null: no limit.")
    places: list[str] = Field(description="Where its jobs may run.")
    recordings: list[str] = Field(description="Recordings that jobs may name, as on: recorded:NAME.")


class FirstProbe(BaseModel):
    """A configuration that would be tried first."""

    configuration: str = Field(description="The machines.")
    because: str = Field(description="Why it would be tried first.")
    at_most_usd: float = Field(description="Its maximum cost in dollars.")
    at_most_s: float = Field(description="Its maximum duration in seconds.")


class Plan(BaseModel):
    """What a search would do. Nothing was started."""

    job: str = Field(description="The job's name.")
    asked: str = Field(description="The goal and the limits in words.")
    on: str = Field(description="Where it would run.")
    configurations: int | None = Field(description="Configurations in the search space; null if not known beforehand.")
    types: list[str] = Field(description="Instance types in the search space.")
    budget_usd: float | None = Field(description="The run's budget, final run included; null: no limit.")
    left_usd: float | None = Field(description="What is left of the agent's budget; null: the run does not count.")
    first: list[FirstProbe] = Field(description="The first probes; empty if they are not known beforehand.")


class Begun(BaseModel):
    """The outcome of a request that may cost money."""

    status: Literal["started", "waiting_for_yes", "declined"] = Field(
        description="waiting_for_yes: nothing was started; your user has to approve it first."
    )
    run: str | None = Field(description="The run's name; null until it exists.")
    worst_usd: float = Field(description="The maximum cost in dollars.")
    question: str | None = Field(description="With waiting_for_yes: the id to pass to go_on after the user said yes.")
    say: str = Field(description="What to tell the user, or what to do next.")


class Run(BaseModel):
    """A summary of a run."""

    run: str = Field(description="Its name.")
    job: str = Field(description="The job's name.")
    status: str = Field(description="Its status.")
    on: str = Field(description="Where it runs.")
    owner: str | None = Field(description="Its owner; null: the command line. You can only act on your own runs.")
    provenance: str | None = Field(description="live: real dollars. simulated, recorded: no real dollars.")
    asked: str = Field(description="The goal and the limits in words.")
    chosen: str | None = Field(description="The chosen configuration; null before the decision.")
    spent_usd: float = Field(description="Dollars spent so far.")
    budget_usd: float | None = Field(description="The run's budget; null: no limit.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")


class Runs(BaseModel):
    """Some runs, newest first."""

    runs: list[Run] = Field(description="The runs, newest first.")
    total: int = Field(description="How many runs pass the filters.")


class Answer(Run):
    """A run with its result."""

    sentence: str = Field(description="The result, or the state of the run, in a sentence.")
    more: str = Field(description="A further sentence if needed; else empty.")
    next: str = Field(description="What happens next, or why the run ended.")
    figures: dict[str, str] = Field(description="The key figures.")


class ComparedRun(BaseModel):
    """One of the compared runs."""

    run: str = Field(description="Its name.")
    headline: str = Field(description="Its result in one line.")
    certified: bool | None = Field(description="Whether its decision is certified; null before the decision.")
    spent_usd: float = Field(description="Dollars spent so far.")
    provenance: str | None = Field(description="live: real dollars. simulated, recorded: no real dollars.")


class ComparedThing(BaseModel):
    """One compared property, with its value in every run."""

    name: str = Field(description="The property, or the probed configuration.")
    values: list[str] = Field(description="One value for each run, in order; a dash for none.")


class Comparison(BaseModel):
    """Runs side by side."""

    runs: list[ComparedRun] = Field(description="The runs, in the requested order.")
    told: list[ComparedThing] = Field(description="Results, certificates, limits and costs.")
    probed: list[ComparedThing] = Field(description="What each probed configuration showed.")
    jobs_differ: list[ComparedThing] = Field(description="The keys of the job file that differ.")
    notes: list[str] = Field(description="What cannot be compared, and why.")

    @classmethod
    def of(cls, comparison: Mapping[str, Any]) -> Self:
        """The service's answer of /compare, reduced to what an assistant needs."""
        runs = [{**each["summary"], **each} for each in comparison["runs"]]
        return cls(
            runs=[ComparedRun(**{name: each[name] for name in ComparedRun.model_fields}) for each in runs],
            told=[_compared_row(row) for section in comparison["sections"] for row in section["rows"]],
            probed=[_compared_row(row) for row in comparison["probed"]["rows"]],
            jobs_differ=[_compared_row(row) for row in comparison["job"]["rows"] if row["differs"]],
            notes=comparison["notes"],
        )


def _compared_row(row: Mapping[str, Any]) -> ComparedThing:
    return ComparedThing(name=row["name"], values=[cell["words"] for cell in row["cells"]])


class WhatIf(BaseModel):
    """The decision under another goal, computed from stored probes."""

    run: str = Field(description="The run's name.")
    asked: str = Field(description="The goal and the limits, in words.")
    words: str = Field(description="The decision in a sentence.")
    chosen: str | None = Field(description="The chosen configuration; null: nothing can be certified.")
    certificate: str | None = Field(description="The certificate in a sentence.")
    not_certain: str | None = Field(description="A clearly better choice that is expected to fit but not certified.")


class Event(BaseModel):
    """An event of a run."""

    seq: int = Field(description="Its number.")
    kind: str = Field(description="started, reserved, settled, decided ...")
    words: str = Field(description="What happened.")
    spent_usd: float = Field(description="What the run had spent in all after this event.")
    left_usd: float | None = Field(description="What was left of its budget.")


class Watched(BaseModel):
    """The new events of a run."""

    run: str = Field(description="The run's name.")
    status: str = Field(description="Its status.")
    over: bool = Field(description="Whether no process drives the run any more: there is nothing to wait for.")
    events: list[Event] = Field(description="The new events, in order.")
    last: int = Field(description="Call again with after=last.")


class LogLine(BaseModel):
    """A line of a log in the service's answer."""

    text: str


class LogWindow(BaseModel):
    """The last lines of a log in the service's answer. `start`: the byte of the log at which they begin."""

    launch: int
    lines: list[LogLine]
    start: int
    done: bool


class JobLog(BaseModel):
    """The last lines of a job's log."""

    run: str = Field(description="The run's name.")
    launch: int = Field(description="The number of the launch within the run.")
    text: str = Field(description="The last lines.")
    earlier: bool = Field(description="Whether the log has earlier lines.")
    done: bool = Field(description="Whether the log is complete.")


class Offer(BaseModel):
    """An instance type in a region."""

    instance_type: str = Field(description="Its name.")
    cloud: str = Field(description="The cloud.")
    region: str = Field(description="The region.")
    usd_per_hour: float = Field(description="Its price.")
    gpu: str = Field(description="Its accelerators; empty for none.")
    vcpus: float | None = Field(description="Its processors.")
    memory_gb: float | None = Field(description="Its memory.")


class Offers(BaseModel):
    """Some offers, cheapest first."""

    offers: list[Offer] = Field(description="The offers, cheapest first.")
    total: int = Field(description="How many offers pass the filters.")


class Done(BaseModel):
    """What happens now."""

    run: str = Field(description="The run's name.")
    words: str = Field(description="What happens now, in words.")
