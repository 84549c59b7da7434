"""Jobs for workers, and waiting for what real processes do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from in_the_middle import Gate

from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.planners.jobfile.read import load_job

PATIENCE_S = 300.0
SIMULATED = Job(
    "demo",
    5e7,
    Goal(Objective.FASTEST, budget_usd=100.0),
    hints=Hints(parameters=25e6, flops_per_sample=12e9, global_batch=256),
    search=Search(nodes=(1, 8), instances=("c5.4xlarge", "g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge"), earlier=False),
)


@pytest.fixture(scope="session")
def until() -> Callable[[Callable[[], bool]], None]:
    """Waits until something real has happened, for as long as a busy machine may take."""

    def wait(happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.1)  # whoever asks more often takes a core from what is waited for

    return wait


@pytest.fixture
def simulated() -> Job:
    """A search of a dozen probes, and a run of two days, in a second."""
    return SIMULATED


@pytest.fixture
def recorded(recorded_job: Callable[..., Path], recording: Path) -> Job:
    """A search of single probes on a recording."""
    return replace(load_job(recorded_job("budget: 200")), on=f"recorded:{recording}")


@pytest.fixture
def gate(home: Path) -> Iterator[Gate]:
    """Holds up whoever goes on with a simulated run."""
    found = Gate(home)
    yield found
    found.close()
