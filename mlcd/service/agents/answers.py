"""What the tools answer: few properties, each with a description."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field


class Allowance(BaseModel):
    """What this agent may do."""

    may: Literal["look", "probe", "launch"] = Field(description="Set by who started the server.")
    words: str = Field(description="The same in a sentence.")
    left_usd: float | None = Field(description="Dollars that it may still spend, over all its runs; null for no limit.")
    places: list[str] = Field(description="Where its jobs may run.")
    recordings: list[str] = Field(description="Recordings that jobs may name, as on: recorded:NAME.")


class FirstProbe(BaseModel):
    """A configuration that would be tried first."""

    configuration: str = Field(description="Which machines.")
    because: str = Field(description="Why.")
    at_most_usd: float = Field(description="What it may cost.")
    at_most_s: float = Field(description="What it may take.")


class Plan(BaseModel):
    """What a search would do. Nothing was started."""

    job: str = Field(description="The job's name.")
    asked: str = Field(description="All that is asked of it, in words.")
    on: str = Field(description="Where it would run.")
    configurations: int | None = Field(description="How many there are; null where only trying tells.")
    types: list[str] = Field(description="Instance types among them.")
    budget_usd: float | None = Field(description="What it may spend, the final run included; null for no limit.")
    left_usd: float | None = Field(description="Of the agent's budget; null where the run would not count against it.")
    first: list[FirstProbe] = Field(description="What would be tried first; empty where that is not known beforehand.")


class Begun(BaseModel):
    """What came of a request that may cost money."""

    status: Literal["started", "waiting_for_yes", "declined"] = Field(
        description="started: it is under way. waiting_for_yes: nothing was started; your user has to say yes first."
    )
    run: str | None = Field(description="The run, once there is one.")
    worst_usd: float = Field(description="The most that it can cost.")
    question: str | None = Field(description="Of waiting_for_yes: what to give to go_on once the user has said yes.")
    say: str = Field(description="What to tell the user, or to do next.")


class Run(BaseModel):
    """A run in short."""

    run: str = Field(description="Its name.")
    job: str = Field(description="The job's name.")
    status: str = Field(description="Where it stands.")
    on: str = Field(description="Where it runs.")
    owner: str | None = Field(description="Whose it is; null: of the command line. You can only act on your own.")
    provenance: str | None = Field(description="live: real dollars. simulated, recorded: not.")
    asked: str = Field(description="All that is asked of it, in words.")
    chosen: str | None = Field(description="What was decided.")
    spent_usd: float = Field(description="Dollars so far.")
    budget_usd: float | None = Field(description="Dollars that it may spend.")
    elapsed_s: float = Field(description="Seconds on the run's clock.")


class Runs(BaseModel):
    """Some runs, the newest first."""

    runs: list[Run] = Field(description="Those that were asked for.")
    total: int = Field(description="How many there are.")


class Answer(Run):
    """A run's answer."""

    sentence: str = Field(description="What came of it, or where it stands.")
    more: str = Field(description="One more sentence where it needs saying.")
    next: str = Field(description="What will happen next, or why it ended.")
    figures: dict[str, str] = Field(description="The few numbers that matter.")


class ComparedRun(BaseModel):
    """A run among others."""

    run: str = Field(description="Its name.")
    headline: str = Field(description="Its answer in one line.")
    certified: bool | None = Field(description="Whether its choice is certified; null where nothing is decided.")
    spent_usd: float = Field(description="Dollars so far.")
    provenance: str | None = Field(description="live: real dollars. simulated, recorded: not.")


class ComparedThing(BaseModel):
    """One thing, of every run."""

    name: str = Field(description="What it is; of a configuration, what it showed.")
    values: list[str] = Field(description="One for each run, in order; a dash for nothing.")


class Comparison(BaseModel):
    """Runs side by side."""

    runs: list[ComparedRun] = Field(description="In the order in which they were asked for.")
    told: list[ComparedThing] = Field(description="Answers, certificates, limits and costs.")
    probed: list[ComparedThing] = Field(description="What each configuration showed.")
    jobs_differ: list[ComparedThing] = Field(description="The keys of the job file in which their jobs differ.")
    notes: list[str] = Field(description="What cannot be compared, and why.")

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """In fewer words than the service's."""
        runs = [{**each["summary"], **each} for each in found["runs"]]
        return cls(
            runs=[ComparedRun(**{name: each[name] for name in ComparedRun.model_fields}) for each in runs],
            told=[_thing(row) for section in found["sections"] for row in section["rows"]],
            probed=[_thing(row) for row in found["probed"]["rows"]],
            jobs_differ=[_thing(row) for row in found["job"]["rows"] if row["differs"]],
            notes=found["notes"],
        )


def _thing(row: Mapping[str, Any]) -> ComparedThing:
    return ComparedThing(name=row["name"], values=[cell["words"] for cell in row["cells"]])


class WhatIf(BaseModel):
    """What would have been decided, from stored probes."""

    run: str = Field(description="The run's name.")
    asked: str = Field(description="The goal and the limits, in words.")
    words: str = Field(description="The decision in a sentence.")
    chosen: str | None = Field(description="What would be chosen; null: nothing can be certified.")
    certificate: str | None = Field(description="What makes it safe.")
    not_certain: str | None = Field(description="What is clearly better and expected to fit, but not certain to.")


class Event(BaseModel):
    """What happened to a run."""

    seq: int = Field(description="Its number.")
    kind: str = Field(description="started, reserved, settled, decided ...")
    words: str = Field(description="What happened.")
    spent_usd: float = Field(description="What the run has spent since its beginning.")
    left_usd: float | None = Field(description="What is left of its budget.")


class Watched(BaseModel):
    """What is new of a run."""

    run: str = Field(description="The run's name.")
    status: str = Field(description="Where it stands.")
    over: bool = Field(description="Whether nobody drives it any more: there is nothing to wait for.")
    events: list[Event] = Field(description="What is new, in order.")
    last: int = Field(description="Ask again with after=last.")


class LogLine(BaseModel):
    """A line of a log, as a service gives it."""

    text: str


class LogWindow(BaseModel):
    """The last lines of a log, as a service gives them. `start`: the byte of the log at which they begin."""

    launch: int
    lines: list[LogLine]
    start: int
    done: bool


class JobLog(BaseModel):
    """The end of what a job has written."""

    run: str = Field(description="The run's name.")
    launch: int = Field(description="Which launch of the run it is of.")
    text: str = Field(description="The last lines.")
    earlier: bool = Field(description="Whether something was written before them.")
    done: bool = Field(description="Whether nothing more will be written.")


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
    """Some offers, the cheapest first."""

    offers: list[Offer] = Field(description="Those that were asked for.")
    total: int = Field(description="How many pass the filters.")


class Done(BaseModel):
    """What happens now."""

    run: str = Field(description="The run's name.")
    words: str = Field(description="In words.")
