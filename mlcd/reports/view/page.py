"""A run as its page shows it: its document, the search in numbers, where it stands, and what can be done."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.core.part import Finite, Part
from mlcd.reports.launch_progress import Headway
from mlcd.reports.run_document import NotBegun, RunDocument
from mlcd.reports.run_document.core import RunForecast
from mlcd.reports.view.summary import Summary


class PathStep(Part):
    """A probe or trial: its result, the ends of its interval, and what finishing there would take."""

    number: int = Field(description="Its place in the order, from 1 on.")
    series: str = Field(description="What is drawn alike: the instance type and, where it may vary, the batch.")
    label: str = Field(description="The name of its configuration.")
    nodes: int = Field(description="How many machines, or functions.")
    batch: int | None = Field(description="The global batch, where it may vary.")
    rate: float | None = Field(description="Its rate; null if it has none.")
    low: float | None = Field(description="The lower end of the rate's interval.")
    high: float | None = Field(description="The upper end of the rate's interval.")
    outcome: str = Field(description="ok, or how it failed.")
    usd: float = Field(description="What it cost.")
    seconds: float = Field(description="How long it took.")
    usd_per_hour: float = Field(description="Dollars an hour.")
    gpu: str = Field(description="Its accelerator; empty for none.")
    gpus: int = Field(description="Accelerators of all its machines together.")
    because: str = Field(description="Why it was made.")
    detail: str = Field(description="More of how it ended.")
    certified: bool | None = Field(description="Whether it may be chosen; null where that is not asked.")
    chosen: bool = Field(description="Whether it measured the decision.")
    finish: RunForecast | None = Field(description="What finishing there takes; null where it is not known.")


class SpendPoint(Part):
    """Where a run stood after a launch."""

    elapsed_s: float = Field(description="Seconds on the run's clock.")
    spent_usd: float = Field(description="Dollars spent so far.")
    kept_usd: Finite = Field(description="Dollars that had to be kept then to finish.")
    kept_s: Finite = Field(description="Seconds that had to be kept then to finish.")
    label: str = Field(description="The configuration of the launch; empty at the beginning.")
    purpose: Literal["probe", "run"] = Field(description="Whether it was a probe, or the job itself.")


class Spending(Part):
    """What was spent, against the limits."""

    budget_usd: float | None = Field(description="Dollars that may be spent; null for no limit.")
    deadline_s: float | None = Field(description="Seconds that it may take; null for no limit.")
    points: list[SpendPoint] = Field(description="From nothing on, one after each launch.")


class UnderWay(Part):
    """A launch that is reserved and not settled."""

    label: str = Field(description="The launch's name.")
    purpose: Literal["probe", "run"] = Field(description="Whether it is a probe, or the job itself.")
    configuration: str = Field(description="The name of its configuration.")
    because: str = Field(description="Why it was made.")
    worst_usd: float = Field(description="Dollars that are reserved for it.")
    worst_s: float = Field(description="Seconds that are reserved for it.")
    since_s: float = Field(description="When it began, on the run's clock.")


class CertificateTerm(Part):
    """gone + kept <= limit."""

    unit: Literal["usd", "s"] = Field(description="Dollars or seconds.")
    gone: float = Field(description="What the search took.")
    kept: float = Field(description="What finishing takes at the most.")
    limit: float = Field(description="The limit.")
    holds: bool = Field(description="Whether the sum is within the limit.")


class Certificate(Part):
    """What makes a choice safe."""

    certified: bool = Field(description="Whether it is.")
    confidence: float | None = Field(description="The probability with which the job is done within its limits.")
    headline: str = Field(description="What it is about.")
    sentence: str = Field(description="What is summed up.")
    terms: list[CertificateTerm] = Field(description="A sum for each limit.")


class PageAnswer(Part):
    """The answer in words."""

    headline: str = Field(description="In one line of few words; while there is no decision, the sentence.")
    sentence: str = Field(description="In one sentence.")
    more: str = Field(description="One more where it needs saying; else empty.")


class PageCard(Part):
    """A key figure."""

    name: str = Field(description="What it is.")
    value: str = Field(description="How much it is.")
    note: str = Field(description="A few words below it.")


class RunPage(Part):
    """A run as its page shows it."""

    summary: Summary = Field(description="Its line in the list of runs.")
    answer: PageAnswer = Field(description="What came of it, or where it stands.")
    cards: list[PageCard] = Field(description="The few numbers that matter.")
    path: list[PathStep] = Field(description="Every probe or trial, in order.")
    spend: Spending = Field(description="What was spent after each launch.")
    under_way: list[UnderWay] = Field(description="What was begun and is not settled.")
    warnings: list[str] = Field(description="The newest warnings.")
    certificate: Certificate | None = Field(description="What makes the choice safe; null where nothing is known yet.")
    next: str = Field(description="What will happen next, or why it ended.")
    actions: list[Literal["launch", "resume", "stop", "down"]] = Field(description="What can be done now.")
    document: RunDocument | NotBegun = Field(description="What `mlcd show -o json` prints.")
    progress: list[Headway] = Field(
        default=[], description="Where the live launches stand of a run that is driven now."
    )
