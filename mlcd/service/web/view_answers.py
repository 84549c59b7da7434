"""A run's page and a what-if as the OpenAPI document describes them: what `mlcd.reports.view` makes."""

from __future__ import annotations

from typing import Any, Literal

from mlcd.reports.headway import Headway
from mlcd.reports.view import Summary
from mlcd.service.web.answers import Answer


class Finish(Answer):
    """What is left of the job on a configuration."""

    seconds: float
    usd: float
    worst_seconds: float
    worst_usd: float


class Step(Answer):
    """A probe: its result, the ends of its interval, and what finishing there would take."""

    number: int
    series: str
    label: str
    nodes: int
    batch: int | None
    rate: float | None
    low: float | None
    high: float | None
    outcome: str
    usd: float
    seconds: float
    usd_per_hour: float
    because: str
    detail: str
    certified: bool | None
    chosen: bool
    finish: Finish | None


class SpendPoint(Answer):
    """Where a run stood after a launch; `kept`: what had to be kept then to finish."""

    elapsed_s: float
    spent_usd: float
    kept_usd: float | None
    kept_s: float | None
    label: str
    purpose: Literal["probe", "run"]


class Spending(Answer):
    """What was spent, against the limits."""

    budget_usd: float | None
    deadline_s: float | None
    points: list[SpendPoint]


class UnderWay(Answer):
    """A launch that is reserved and not settled; `since_s`: when, on the run's clock."""

    label: str
    purpose: Literal["probe", "run"]
    configuration: str
    because: str
    worst_usd: float
    worst_s: float
    since_s: float


class Term(Answer):
    """gone + kept <= limit."""

    unit: Literal["usd", "s"]
    gone: float
    kept: float
    limit: float
    holds: bool


class Certificate(Answer):
    """What makes a choice safe; `confidence`: the probability with which a certified job is done within its limits."""

    certified: bool
    confidence: float | None
    headline: str
    sentence: str
    terms: list[Term]


class Refused(Answer):
    """A step that the limits did not allow."""

    label: str
    because: str


class Operator(Answer):
    """A kind of operator: calls in one pass, and the share of its time."""

    kind: str
    count: int
    share: float


class Trial(Answer):
    """A load test of one configuration of a server."""

    number: int
    label: str
    knobs: dict[str, int | float | str | bool]
    rate: float | None
    low: float | None
    high: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    itl_p50_ms: float | None
    itl_p95_ms: float | None
    usd_per_hour: float
    usd_per_million: float | None
    peak_gb: float | None
    keeps: bool | None
    certified: bool | None
    breaks: list[str]
    chosen: bool
    outcome: str
    usd: float
    seconds: float
    because: str
    detail: str


class Cap(Answer):
    """A latency that is asked for."""

    figure: str
    at_most_ms: float
    words: str


class Serving(Answer):
    """Of a run that serves a model."""

    model: str
    operators: list[Operator]
    trials: list[Trial]
    caps: list[Cap]
    min_rate: float | None
    unit: str
    counted: str


class Stage(Answer):
    """A stage of a plan: what each trial is given, and what all take together."""

    stage: int
    trials: int
    epochs: int
    functions: int
    memory_mb: int
    storage: str
    seconds: float
    usd: float


class Plan(Answer):
    """The plan of one method."""

    name: str
    method: str
    chosen: bool
    seconds: float
    usd: float
    stages: list[Stage]


class Took(Answer):
    """Time and money."""

    seconds: float
    usd: float


class Allocated(Answer):
    """An allocation that nothing beats in both time and cost of one epoch."""

    seconds: float
    usd: float
    label: str
    storage: str
    knee: bool
    used: bool


class Done(Answer):
    """A stage of a tuning run, or an epoch of a training run, as it went."""

    stage: int | None
    epoch: int | None
    label: str
    seconds: float
    usd: float
    loss: float | None


class Functions(Answer):
    """Of a run on functions."""

    tuning: bool
    plans: list[Plan]
    even_split: Took | None
    boundary: list[Allocated]
    done: list[Done]


class Said(Answer):
    """The answer in a sentence, and one more where it needs saying."""

    sentence: str
    more: str


class Card(Answer):
    """A key figure."""

    name: str
    value: str
    note: str


class View(Answer):
    """A run as its page shows it; `document` is what `mlcd show -o json` prints.

    `progress`: where the live launches of a run stand that is driven now; the stream of its events tells it on.
    """

    summary: Summary
    answer: Said
    cards: list[Card]
    path: list[Step]
    spend: Spending
    under_way: list[UnderWay]
    warnings: list[str]
    certificate: Certificate | None
    refusals: list[Refused]
    next: str
    actions: list[Literal["launch", "resume", "stop", "down"]]
    serving: Serving | None
    functions: Functions | None
    document: dict[str, Any]
    progress: list[Headway]


class WhatIf(Answer):
    """What would have been decided under another goal; `decision` is what `mlcd what-if -o json` prints of it.

    `label`: what is chosen, as the trade-off names it.
    """

    run: str
    goal: str
    goal_words: str
    decision: dict[str, Any]
    label: str | None
    words: str
    certificate: Certificate | None
