"""A model to be served: its knobs, what its owner asks of it, and what is known of it before the first trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, inf, isfinite, log, sqrt
from typing import ClassVar

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Relaxation
from mlcd.core.job import Job
from mlcd.core.measurement import SUREST, Measurement, Z
from mlcd.core.payload import Ask, Easing, Evidence, Setting
from mlcd.planners.serve.agreement import Agreement
from mlcd.planners.serve.llm.nouns import EngineLoad, LanguageModel, Stream
from mlcd.planners.serve.model_facts import ModelFacts

Knob = str | int | float
"""The value of something that may be set."""
Knobs = tuple[tuple[str, Knob], ...]
"""Every knob of a server with its value, in a fixed order."""


@dataclass(frozen=True)
class KnobTable:
    """The knobs with their values, in order, and what they cost.

    `usd_per_hour`: for each unit of a knob that is a number, or for each value of one that is a word. `base_usd`: of
    the machine itself. `cores`, `memory`, `gpus`: the knobs that size a machine, for the offer's own words.
    """

    knobs: Mapping[str, tuple[Knob, ...]]
    usd_per_hour: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    base_usd: float = 0.0
    machine: str = ""
    cores: str = ""
    memory: str = ""
    gpus: str = ""

    def price(self, knobs: Knobs) -> float:
        """Dollars an hour with the knobs set so."""
        return sum((self.usd(name, value) for name, value in knobs), start=self.base_usd)

    def usd(self, name: str, value: Knob) -> float:
        """Dollars an hour that a knob adds."""
        rate = self.usd_per_hour.get(name, 0.0)
        if isinstance(rate, Mapping):
            return float(rate[str(value)])
        return rate * float(value) if rate else 0.0


INSTANCE = "instance"
"""The knob that names the type of a machine to rent; the catalog has its price."""
UPLOAD = "upload:"
"""Stands before the hash of a model that was sent to a service, where otherwise the path of its file stands."""


class Figure(StrEnum):
    """What a load test tells besides its rate: quantiles, in seconds.

    `p50`, `p95`, `p99`: of the time from when a request was due to its whole answer. `ttft`: the time to the first
    token of an answer; `tpot`: the mean time of each further token of an answer; `itl`: between two tokens.
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
"""The figures of whole answers, which every load test measures."""


class Counted(StrEnum):
    """What a rate counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"


class Arrivals(StrEnum):
    """How a load test sends its requests: at random moments of a stated rate, or each once another is answered."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit that the served model keeps: 'p95 <= 30 ms'."""

    figure: Figure
    at_most_s: float

    def __str__(self) -> str:
        if not isfinite(self.at_most_s):  # of what comes closest
            return f"{self.figure} was not measured"
        return f"{self.figure} <= {1_000 * self.at_most_s:g} ms"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the Open Inference Protocol: where it answers, and the command that starts it, if any."""

    url: str
    model: str
    command: str = ""


@dataclass(frozen=True)
class ServingTask(Ask):
    """What is to be served, and what its owner asks of it.

    `min_rate`: requests (or tokens) a second that it has to answer. `arrivals`: how trials send their requests; open
    ones at `min_rate` and a little more. `path`: the model's file, or `upload:HASH`. `shapes`: the size of each axis
    that the model leaves open. `table`: what may vary; None where a recording says that. `trial_s`: how long a trial
    may take. `endpoint`: another server than our own. `knowledge`: which models seen before a search may learn from,
    by name or folder. `language`: of a language model, what is particular about that. `target`: where the answer will
    be deployed, whose server its trials then run on; empty for our own. `agreement`: what a comparison of int8 with the
    model itself showed; None where there was none.
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
        """The hash of the model, if it was sent."""
        return self.path.removeprefix(UPLOAD) if self.path.startswith(UPLOAD) else None

    @property
    def file(self) -> str:
        """The model's file as its owner knows it."""
        return f"{self.model.name}.onnx" if self.upload is not None else self.path


@dataclass(frozen=True, slots=True)
class Level:
    """What a server did with so many requests in flight at once; figures as in `Served`. `engine`: what it told."""

    concurrency: int
    rate: float
    rel_error: float
    figures: Mapping[Figure, float]
    high: Mapping[Figure, float]
    engine: EngineLoad | None = None

    @property
    def slow_rate(self) -> float:
        """The slow end of its rate."""
        return self.rate * exp(-Z * self.rel_error)

    def pooled(self, other: Level) -> Level:
        """Two load tests with equally many requests at once as one."""
        weights = [1 / max(each.rel_error, SUREST) ** 2 for each in (self, other)]
        rate = exp((weights[0] * log(self.rate) + weights[1] * log(other.rate)) / sum(weights))
        figures, high = _pooled_figures((self.figures, self.high), (other.figures, other.high))
        rel_error = max(SUREST, 1 / sqrt(sum(weights)))
        return Level(self.concurrency, rate, rel_error, figures, high, other.engine or self.engine)


Figures = Mapping[Figure, float]


def _pooled_figures(*tests: tuple[Figures, Figures]) -> tuple[Figures, Figures]:
    """Figures and their upper ends of two load tests as one, of those that both have."""
    figures, high = {}, {}
    for figure in (figure for figure in tests[0][0] if figure in tests[1][0]):
        pairs = [(middle[figure], top.get(figure, inf)) for middle, top in tests]
        widths = [max(log(top / middle), 1e-9) for middle, top in pairs]
        total = sum(1 / width**2 for width in widths)
        if total == 0:  # neither has an upper end
            figures[figure], high[figure] = sqrt(pairs[0][0] * pairs[1][0]), inf
            continue
        weighted = zip(pairs, widths, strict=True)
        figures[figure] = exp(sum(log(middle) / width**2 for (middle, _), width in weighted) / total)
        high[figure] = figures[figure] * exp(1 / sqrt(total))
    return figures, high


@dataclass(frozen=True, slots=True)
class Served(Evidence):
    """What a load test showed besides its rate.

    `figures`: each as measured; `high`: the upper end of its interval, which certificates count on. `peak_gb`: the
    most memory that the server held. `levels`: of a language model, each number of requests at once that was tried;
    rate and figures of the whole are then those of the best level at the caps of that time. `server`: what answered,
    with its version, where that is known and not our own.
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
        """Two load tests of one configuration as one: logs averaged, the surer one counting more."""
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
    """What a load test has seen since it last reported.

    `latencies_s`: of each request that was answered well, from the moment it was due. `error`: why the first of the
    failures failed. `stated`: figures of a recording that kept no single request. `streams`: of a language model, each
    answer in place of its latency alone, with `concurrency` requests in flight. `engine`: what it told of itself.
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
    """How each knob of a server is set; those that the offer was cut to (cores, memory) are among them."""

    kind: ClassVar[str] = "serve.settings"
    knobs: Knobs

    def words(self, machines: str, nodes: int) -> str:
        """'threads 2, batch 8'."""
        return ", ".join(f"{name} {value}" for name, value in self.knobs)


@dataclass(frozen=True, slots=True)
class EasedTask(Easing):
    """The caps, or the rate, that a configuration would have kept."""

    kind: ClassVar[str] = "serve.eased"
    caps: tuple[Cap, ...] = ()
    min_rate: float | None = None


def service_of(job: Job) -> ServingTask:
    """What is served; asking a job that serves nothing is a bug."""
    if not isinstance(job.ask, ServingTask):
        raise ValueError(f"job '{job.name}' is not a service")
    return job.ask


def serving_task(job: Job) -> ServingTask | None:
    """What is served; None of a job that serves nothing."""
    return job.ask if isinstance(job.ask, ServingTask) else None


def knobs_of(configuration: Configuration) -> Knobs:
    """How the server is set there; empty where there is none."""
    return configuration.setting.knobs if isinstance(configuration.setting, ServerSettings) else ()


def served_by(measurement: Measurement) -> Served:
    """What a load test showed besides its rate; nothing where it was none, or failed."""
    return measurement.evidence if isinstance(measurement.evidence, Served) else Served({}, {})


def figures_shown(measurement: Measurement) -> set[Figure]:
    """The figures that a trial has measured, at any number of requests at once."""
    served = served_by(measurement)
    return {figure for figures in (served.figures, *(level.figures for level in served.levels)) for figure in figures}


def eased(way: Relaxation) -> EasedTask:
    """What would have to be asked less of; nothing where limits alone would have to be raised."""
    return way.easing if isinstance(way.easing, EasedTask) else EasedTask()
