"""The time to choose the next serving trial among 2,160 and 10,000 configurations after 30 trials.

Models, operators and trials are made up: speed depends on their numbers, not on their content. Two spaces of 10,000:
one where cores and memory vary besides the device's settings (as on a GPU), one where every configuration is its own
cell, the worst case.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Step
from mlcd.core.version import VERSION
from mlcd.planners.serve.grey_box import GreyBox
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Cap, Figure, Knobs, KnobTable, Served, ServingTask, knobs_of
from mlcd.planners.serve.space import serving_space

MODELS, TRIALS, REPEATS, TARGET_MS = 22, 30, 21, 200
BATCHES, SHARES = (1, 2, 4, 8, 16, 32, 64, 128, 256), (12, 25, 50, 100)
SPACES = {
    "2,160: 72 cells": (SHARES, BATCHES, (1, 2, 3, 4, 5), (0.5, 1, 2, 4, 8, 16)),
    "10,080: 240 cells": (
        (10, 12, 20, 25, 35, 50, 65, 75, 85, 100),
        (*BATCHES, 48, 96, 192),
        (1, 2, 3, 4, 5, 6, 7),
        (0.5, 1, 2, 4, 8, 16),
    ),
    "10,000: 10,000 cells": (tuple(range(1, 101)), tuple(range(1, 51)), (1,), (16,)),
}


def space_of(
    shares: tuple[int, ...], batches: tuple[int, ...], cores: tuple[int, ...], memory: tuple[float, ...]
) -> Space:
    """All settings of these, in two precisions."""
    knobs = {
        "precision": ("fp32", "bf16"),
        "sm_share": shares,
        "batch": batches,
        "cpu_cores": cores,
        "memory_gb": memory,
    }
    prices = {"cpu_cores": 0.05, "sm_share": 0.04, "memory_gb": 0.02}
    return serving_space(KnobTable(knobs, prices, cores="cpu_cores", memory="memory_gb"))


def model(name: str, rng: np.random.Generator) -> SeenModel:
    """A minimal time of the host, and a device time that grows with the batch and shrinks with the share."""
    floor, work, held = 10 ** rng.uniform(-3.5, -2), 10 ** rng.uniform(-5, -3), 10 ** rng.uniform(-2, -0.3)
    cells: dict[Knobs, Cell] = {}
    for precision in ("fp32", "bf16"):
        eases = 1.0 if precision == "fp32" else 0.4
        for share in SHARES:
            for batch in BATCHES:
                seconds = max(floor, eases * work * batch / (share / 100)) * float(10 ** rng.normal(0, 0.03))
                figures = dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), seconds)
                knobs = (("precision", precision), ("sm_share", share), ("batch", batch))
                cells[knobs] = Cell(batch / seconds, figures, float(held + 0.003 * batch))
    operators = tuple(Operator(f"operator{i}", 20, work * float(rng.random()), 1.0) for i in range(8))
    profiles = tuple(Profile(batch, operators, precision) for precision in ("fp32", "bf16") for batch in (8, 64))
    return SeenModel(ModelFacts(name, inputs="image", weights_mb=1_000 * held, profiles=profiles), cells)


def knowledge(rng: np.random.Generator) -> Knowledge:
    """Known models."""
    anatomy = Anatomy(("precision", "sm_share", "batch"), host="cpu_cores", memory="memory_gb")
    hosts = {"image": {float(cores): 600.0 * cores for cores in range(1, 9)}}
    return Knowledge(Kind.DEVICE, anatomy, tuple(model(f"seen{i}", rng) for i in range(MODELS)), hosts)


def history(space: Space, rng: np.random.Generator) -> History:
    """Made-up trials spread over the space."""
    tried = []
    for at in rng.choice(len(space), TRIALS, replace=False):
        configuration = space.configurations[at]
        batch, share = (float(dict(knobs_of(configuration))[name]) for name in ("batch", "sm_share"))
        seconds = 0.004 + 2e-4 * batch / (share / 100)
        figures = dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), seconds)
        served = Served(figures, figures, peak_gb=0.3 + 0.003 * batch)
        tried.append(Measurement(configuration, Outcome.OK, 60.0, 0.01, batch / seconds, 0.01, evidence=served))
    return History(tuple(tried))


@dataclass(frozen=True)
class Timing:
    """Milliseconds of the first choice, which evaluates the known models, and of later ones."""

    first: float
    later: list[float]
    step: Step


def measure(space: Space, rng: np.random.Generator) -> Timing:
    """Time one choice."""
    seen, past = knowledge(rng), history(space, rng)
    service = ServingTask(replace(model("new", rng).facts), (Cap(Figure.P95, 0.03),))
    job = Job("speed", 1.0, Goal(Objective.PER_DOLLAR), ask=service, search=Search("grey-box"))
    strategy, took = GreyBox(seen), []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        step = strategy.next_step(job, space, past)
        took.append(1_000 * (time.perf_counter() - started))
    return Timing(took[0], took[1:], step)


def main() -> None:
    """Print the times."""
    print(f"mlcd {VERSION}, numpy {np.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, seed 0")
    print(f"{MODELS} seen models, {TRIALS} trials, {REPEATS} choices; milliseconds; target {TARGET_MS} for 10,000")
    for name, knobs in SPACES.items():
        timing = measure(space_of(*knobs), np.random.default_rng(0))
        low, middle, high = min(timing.later), statistics.median(timing.later), max(timing.later)
        verdict = "ok" if middle < TARGET_MS else "TOO SLOW"
        print(f"{name:24} median {middle:6.1f}  {low:6.1f} .. {high:6.1f}  first {timing.first:7.1f}  {verdict}")


if __name__ == "__main__":
    main()
