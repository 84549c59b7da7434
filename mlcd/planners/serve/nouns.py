"""The types of `mlcd serve`: knobs, caps, the job's serving task, server settings, and what a load test measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, inf, isfinite, log, sqrt
from typing import ClassVar

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Relaxation
from mlcd.core.job import Job
from mlcd.core.measurement import SMALLEST_ERROR, Measurement, Z
from mlcd.core.payload import Ask, Easing, Evidence, Setting
from mlcd.planners.serve.agreement import Agreement
from mlcd.planners.serve.llm.nouns import EngineLoad, LanguageModel, Stream
from mlcd.planners.serve.model_facts import ModelFacts

Knob = str | int | float
"""The value of a server setting that the search may vary."""
Knobs = tuple[tuple[str, Knob], ...]
"""Every knob of a configuration with its value, in a fixed order."""


@dataclass(frozen=True)
class KnobTable:
    """The knobs with all values that may be tried, and their prices.

    `usd_per_hour`: the price per unit of a numeric knob, or of each value of a text knob. `base_usd`: the price of the
    machine itself. `cores`, `memory`, `gpus`: the names of the knobs that state the machine's size; empty if none does.
    """

    knobs: Mapping[str, tuple[Knob, ...]]
    usd_per_hour: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    base_usd: float = 0.0
    machine: str = ""
    cores: str = ""
    memory: str = ""
    gpus: str = ""

    def price(self, knobs: Knobs) -> float:
        """Dollars an hour at these settings."""
        return sum((self.usd(name, value) for name, value in knobs), start=self.base_usd)

    def usd(self, name: str, value: Knob) -> float:
        """Dollars an hour that this value of a knob adds."""
        rate = self.usd_per_hour.get(name, 0.0)
        if isinstance(rate, Mapping):
            return float(rate[str(value)])
        return rate * float(value) if rate else 0.0


INSTANCE = "instance"
"""The knob that names the instance type to rent; its price is in the catalog."""
UPLOAD = "upload:"
"""Prefix of `ServingTask.path` for a model that was uploaded to a service; the hash of the file follows."""


class Figure(StrEnum):
    """Latency percentiles that a load test measures, in seconds.

    `p50`, `p95`, `p99`: from when a request was due to the end of its answer. `ttft`: time to first token. `tpot`: mean
    time per output token after the first. `itl`: inter-token latency.
    """

    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    TTFT_P50 = "ttft_p50"
    TTFT_P95 = "ttft_p95"
    TPOT_P50 = "tpot_p50"
    TPOT_P95 = "tpot_p95"
    ITL_P50 = "itl_p50"
    ITL_P95 = "itl_p95"


QUANTILES = {Figure.P50: 0.50, Figure.P95: 0.95, Figure.P99: 0.99}
"""The percentiles of whole answers, which every load test measures."""


class Counted(StrEnum):
    """The unit of a rate."""

    REQUESTS = "requests"
    TOKENS = "tokens"


class Arrivals(StrEnum):
    """How a load test sends requests. Open loop: at random times at a stated rate. Closed loop: one per free client."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Cap:
    """An upper limit on a latency figure: 'p95 <= 30 ms'."""

    figure: Figure
    at_most_s: float

    def __str__(self) -> str:
        if not isfinite(self.at_most_s):  # in a suggestion made from a trial that lacks the figure
            return f"{self.figure} was not measured"
        return f"{self.figure} <= {1_000 * self.at_most_s:g} ms"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the Open Inference Protocol. `command`: starts it; empty if it is already running."""

    url: str
    model: str
    command: str = ""


@dataclass(frozen=True)
class ServingTask(Ask):
    """The model to serve, the service level that it has to meet, and how trials are made.

    `min_rate`: requests (or tokens) a second that it has to answer. `arrivals`: how trials send their requests; open
    ones at slightly more than `min_rate`. `path`: the model's file, or `upload:HASH`. `shapes`: the size of each free
    axis of the model's inputs. `table`: the knobs; None if a recording defines them. `trial_s`: time limit of a trial.
    `endpoint`: a server to use in place of our own. `knowledge`: the knowledge base to learn from, by name or folder.
    `language`: set for language models only. `target`: the deployment target whose server runs the trials; empty for
    our own server. `agreement`: the comparison of int8 with fp32; None if none was made.
    """

    kind: ClassVar[str] = "serve.task"
    launches_compare: ClassVar[bool] = False
    has_confidence: ClassVar[bool] = False
    model: ModelFacts
    caps: tuple[Cap, ...] = ()
    min_rate: float | None = None
    counted: Counted = Counted.REQUESTS
    arrivals: Arrivals = Arrivals.CLOSED
    path: str = ""
    shapes: Mapping[str, int] = field(default_factory=dict)
    table: KnobTable | None = None
    trial_s: float = 60.0
    endpoint: Endpoint | None = None
    knowledge: str = ""
    language: LanguageModel | None = None
    target: str = ""
    agreement: Agreement | None = None

    @property
    def upload(self) -> str | None:
        """The hash of the model, if it was uploaded."""
        return self.path.removeprefix(UPLOAD) if self.path.startswith(UPLOAD) else None

    @property
    def file(self) -> str:
        """The model's file by a name that its owner recognises."""
        return f"{self.model.name}.onnx" if self.upload is not None else self.path


@dataclass(frozen=True, slots=True)
class Level:
    """What a load test measured at one concurrency. Figures are as in `Served`; `engine`: the engine's own metrics."""

    concurrency: int
    rate: float
    rel_error: float
    figures: Mapping[Figure, float]
    high: Mapping[Figure, float]
    engine: EngineLoad | None = None

    @property
    def slow_rate(self) -> float:
        """The lower bound of the rate."""
        return self.rate * exp(-Z * self.rel_error)

    def pooled(self, other: Level) -> Level:
        """Combine two load tests at the same concurrency, weighted by precision."""
        weights = [1 / max(each.rel_error, SMALLEST_ERROR) ** 2 for each in (self, other)]
        rate = exp((weights[0] * log(self.rate) + weights[1] * log(other.rate)) / sum(weights))
        figures, high = _pooled_figures((self.figures, self.high), (other.figures, other.high))
        rel_error = max(SMALLEST_ERROR, 1 / sqrt(sum(weights)))
        return Level(self.concurrency, rate, rel_error, figures, high, other.engine or self.engine)


Figures = Mapping[Figure, float]


def _pooled_figures(*tests: tuple[Figures, Figures]) -> tuple[Figures, Figures]:
    """Combine the figures that both load tests have, and their upper bounds, weighted by precision."""
    figures, high = {}, {}
    for figure in (figure for figure in tests[0][0] if figure in tests[1][0]):
        pairs = [(middle[figure], top.get(figure, inf)) for middle, top in tests]
        widths = [max(log(top / middle), 1e-9) for middle, top in pairs]
        total = sum(1 / width**2 for width in widths)
        if total == 0:  # neither has an upper bound
            figures[figure], high[figure] = sqrt(pairs[0][0] * pairs[1][0]), inf
            continue
        weighted = zip(pairs, widths, strict=True)
        figures[figure] = exp(sum(log(middle) / width**2 for (middle, _), width in weighted) / total)
        high[figure] = figures[figure] * exp(1 / sqrt(total))
    return figures, high


@dataclass(frozen=True, slots=True)
class Served(Evidence):
    """What a load test measured besides its rate.

    `figures`: as measured; `high`: the upper bound of each, which certificates use. `peak_gb`: the server's peak
    memory. `levels`: for a language model, the results at each concurrency; the trial's rate and figures are then those
    of the best level under the caps of that time. `server`: name and version of the server; empty for our own.
    """

    kind: ClassVar[str] = "serve.served"
    figures: Mapping[Figure, float]
    high: Mapping[Figure, float]
    requests: int = 0
    failures: int = 0
    peak_gb: float | None = None
    levels: tuple[Level, ...] = ()
    server: str = ""

    def pooled(self, other: Served) -> Served:
        """Combine two load tests of one configuration: means of the logs, weighted by precision."""
        figures, high = _pooled_figures((self.figures, self.high), (other.figures, other.high))
        peaks = [each.peak_gb for each in (self, other) if each.peak_gb is not None]
        levels = {level.concurrency: level for level in self.levels}
        for level in other.levels:
            before = levels.get(level.concurrency)
            levels[level.concurrency] = level if before is None else before.pooled(level)
        return Served(
            figures,
            high,
            self.requests + other.requests,
            self.failures + other.failures,
            max(peaks, default=None),
            tuple(levels[concurrency] for concurrency in sorted(levels)),
            self.server if self.server == other.server else "",
        )


@dataclass(frozen=True, slots=True)
class Window(Evidence):
    """What a load test has observed since its last report.

    `latencies_s`: of each successful request, from when it was due. `error`: the reason of the first failure. `stated`:
    figures of a recording that has no single requests. `streams`: for a language model, the streamed answers in place
    of `latencies_s`, with `concurrency` requests in flight. `engine`: the engine's own metrics.
    """

    kind: ClassVar[str] = "serve.window"
    latencies_s: tuple[float, ...] = ()
    failures: int = 0
    error: str = ""
    peak_gb: float | None = None
    stated: Mapping[Figure, float] | None = None
    streams: tuple[Stream, ...] = ()
    concurrency: int = 0
    server: str = ""
    engine: EngineLoad | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings(Setting):
    """The value of each knob of a server, including those that size its machine (cores, memory)."""

    kind: ClassVar[str] = "serve.settings"
    knobs: Knobs

    def words(self, machines: str, nodes: int) -> str:
        """'threads 2, batch 8'."""
        return ", ".join(f"{name} {value}" for name, value in self.knobs)


@dataclass(frozen=True, slots=True)
class EasedTask(Easing):
    """The caps, or the minimum rate, that a configuration would have met."""

    kind: ClassVar[str] = "serve.eased"
    caps: tuple[Cap, ...] = ()
    min_rate: float | None = None


def service_of(job: Job) -> ServingTask:
    """The serving task of a job. A job of another planner is a bug."""
    if not isinstance(job.ask, ServingTask):
        raise ValueError(f"job '{job.name}' is not a service")
    return job.ask


def serving_task(job: Job) -> ServingTask | None:
    """The serving task of a job; None for a job of another planner."""
    return job.ask if isinstance(job.ask, ServingTask) else None


def knobs_of(configuration: Configuration) -> Knobs:
    """The knobs of a configuration; empty if it has no server settings."""
    return configuration.setting.knobs if isinstance(configuration.setting, ServerSettings) else ()


def served_by(measurement: Measurement) -> Served:
    """What a load test measured besides its rate; empty if the measurement is no load test, or failed."""
    return measurement.evidence if isinstance(measurement.evidence, Served) else Served({}, {})


def figures_shown(measurement: Measurement) -> set[Figure]:
    """The figures that a trial has measured, at any concurrency."""
    served = served_by(measurement)
    return {figure for figures in (served.figures, *(level.figures for level in served.levels)) for figure in figures}


def eased(way: Relaxation) -> EasedTask:
    """The caps or rate to relax; empty if only budget or deadline would have to be raised."""
    return way.easing if isinstance(way.easing, EasedTask) else EasedTask()
