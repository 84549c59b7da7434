"""Serving runs with made-up numbers, driven by the real loop, for tests of reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mlcd.core.backend import Launch, Provenance
from mlcd.core.clock import Clock, VirtualClock
from mlcd.core.configuration import Configuration, ProbeTime, Space
from mlcd.core.drive import Guard, search
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Line, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Look, Probe, Step, Watch
from mlcd.planners.serve import service_level
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, KnobTable, Served, ServingTask, knobs_of
from mlcd.planners.serve.space import serving_space

TABLE = KnobTable(
    {"batch": (1, 4, 16, 32), "threads": (1, 2, 4), "precision": ("fp32", "int8"), "memory_gb": (0.5, 4.0)},
    {"threads": 0.05, "memory_gb": 0.01},
    cores="threads",
    memory="memory_gb",
)
SPACE = serving_space(TABLE, ProbeTime(20.0, 0.0))
SERVICE = ServingTask(ModelFacts("resnet50", "cnn"), (Cap(Figure.P95, 0.030),), path="resnet50.onnx")
JOB = Job(
    "resnet50",
    0.0,
    Goal(Objective.PER_DOLLAR, budget_usd=5.0),
    search=Search(method="grey-box", trials=6),
    on="local",
    ask=SERVICE,
)
CHAT = KnobTable({"gpu_type": ("A10", "A100"), "gpus": (1, 2), "users": (1, 8)}, {"gpu_type": {"A10": 1, "A100": 4}})
LANGUAGE = replace(
    JOB,
    name="flan-t5",
    ask=ServingTask(
        ModelFacts("google/flan-t5-xl", parameters=3),
        (Cap(Figure.TTFT_P95, 0.4), Cap(Figure.ITL_P50, 0.05)),
        counted=Counted.TOKENS,
    ),
)
"""A language model, whose trials count tokens."""
Show = Callable[[Configuration], Measurement]
"""What a trial of a configuration shows."""


def show(place: Configuration) -> Measurement:
    """Made up: large batches are fast and slow to answer, half a GB holds no batch of 32."""
    knobs = dict(knobs_of(place))
    batch, threads = float(knobs["batch"]), float(knobs["threads"])
    if batch > 16 and float(knobs["memory_gb"]) < 1:
        return Measurement(place, Outcome.OUT_OF_MEMORY, 3.0, place.usd(3.0), detail="0.61 GB of 0.5 GB")
    pass_s = (0.004 + 0.0012 * batch) / threads**0.8 / (1.6 if knobs["precision"] == "int8" else 1.0)
    return answered(place, batch / pass_s, {Figure.P50: pass_s, Figure.P95: 1.45 * pass_s, Figure.P99: 2.1 * pass_s})


def show_language(place: Configuration) -> Measurement:
    """Made up: more users, more tokens, each later."""
    knobs = dict(knobs_of(place))
    users, fast = float(knobs["users"]), float(knobs["gpus"]) * (3.0 if knobs["gpu_type"] == "A100" else 1.0)
    figures = {Figure.TTFT_P95: 0.1 + 0.03 * users / fast, Figure.ITL_P50: 0.03 + 0.002 * users / fast}
    return answered(place, 20 * users**0.7 * fast**0.6, figures)


def answered(place: Configuration, rate: float, figures: Mapping[Figure, float], spread: float = 0.06) -> Measurement:
    """A trial of 12 seconds; the upper ends lie so much higher."""
    high = {figure: (1 + spread) * value for figure, value in figures.items()}
    served = Served(figures, high, requests=int(12 * rate), peak_gb=0.42)
    return Measurement(place, Outcome.OK, 12.0, place.usd(12.0), rate, 0.01, 1.0, 12 * rate, evidence=served)


@dataclass(frozen=True)
class InOrder:
    """Tries these, one after the other."""

    places: Sequence[Configuration]

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The first that has no answer yet."""
        left = [place for place in self.places if place not in history.tried]
        if not left:
            return Finish("everything that was to be tried was tried")
        return Probe(left[0], because=f"number {len(history.measurements) + 1} of the list")


@dataclass(frozen=True)
class Shown:
    """A profiler that knows the answers."""

    clock: Clock
    show: Show = show

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """The answer, once its time is over."""
        measurement = self.show(launch.configuration)
        self.clock.wait(measurement.seconds)
        return measurement

    def reclaim(self, label: str) -> float | None:
        """Nothing is ever left."""
        return None


def some(space: Space = SPACE, count: int = 6) -> list[Configuration]:
    """So many configurations, from one end of a space to the other."""
    last = len(space) - 1
    return [space.configurations[i * last // max(1, count - 1)] for i in range(count)]


def serving_run(
    ledger: Ledger,
    job: Job = JOB,
    space: Space = SPACE,
    places: Sequence[Configuration] | None = None,
    show: Show = show,
    provenance: Provenance = Provenance.LIVE,
    guard: Guard = service_level.refusal,
) -> str:
    """A run that tries these configurations and decides; returns its name."""
    clock = VirtualClock()
    book = ledger.begin(job.name, clock, Started(job, space, job.on, provenance, "0.1.0"))
    tried = some(space) if places is None else places
    search(InOrder(tried), job, space, Shown(clock, show), book, guard=guard, decide=service_level.decide)
    return book.run


def serving_lines(job: Job = JOB, space: Space = SPACE, **how: object) -> list[Line]:
    """The entries of such a run."""
    ledger = Ledger(None)
    written = ledger.lines(serving_run(ledger, job, space, **how))  # type: ignore[arg-type]
    ledger.close()
    return written


def language_lines(job: Job = LANGUAGE) -> list[Line]:
    """The entries of a run of a language model."""
    space = serving_space(CHAT, ProbeTime(20.0, 0.0))
    return serving_lines(job, space, show=show_language, places=space.configurations, provenance=Provenance.RECORDED)
