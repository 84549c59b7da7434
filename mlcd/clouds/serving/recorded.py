"""Recorded load tests, replayed through the same code path as live ones.

A trial takes the time stated by the space, or half of it if it fails. Its rate and latencies are the recorded ones with
noise: latencies rise by the factor by which the rate falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from mlcd.clouds.virtual import gamma_factors, launch_rng, play
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.planners.serve.known_models import Knowledge, SeenModel
from mlcd.planners.serve.nouns import Window

REPORTS = 30
"""Reports in a trial: enough to estimate its noise within 20 %."""


@dataclass(frozen=True)
class RecordedService:
    """Replays a model's load tests. `noise` is the relative error of a whole trial's rate."""

    knowledge: Knowledge
    model: SeenModel
    clock: VirtualClock
    noise: float = 0.0
    seed: int = 0

    provenance = Provenance.RECORDED

    def run(self, job: Job, launch: Launch) -> Events:
        """Replay one trial."""
        if launch.lifetime_s is None:
            raise BackendError("a recorded trial lasts for its lifetime, but none is given")
        return play(self._events(launch, launch.lifetime_s), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded server ends with this process."""

    def _events(self, launch: Launch, lasts_s: float) -> Iterator[Event]:
        done = self.knowledge.composed(self.model, launch.configuration)
        if done is None:
            yield self._failure(launch, lasts_s / 2)
            return
        factors = gamma_factors(launch_rng(self.seed, launch), self.noise * sqrt(REPORTS), REPORTS)
        yield Sample(0.0, 0.0)
        answered = 0.0
        for i, factor in enumerate(factors, start=1):
            answered += done.rate * lasts_s / REPORTS * float(factor)
            stated = {figure: seconds / float(factor) for figure, seconds in done.figures.items()}
            window = Window(peak_gb=done.peak_gb, stated=stated)
            yield Sample(lasts_s * (i / REPORTS), answered, evidence=window)

    def _failure(self, launch: Launch, at_s: float) -> Ended:
        cell = self.model.cells.get(self.knowledge.cell_of(launch.configuration))
        allowed = self.knowledge.memory_gb(launch.configuration)
        if cell is None or cell.peak_gb is None or allowed is None:
            return Ended(at_s, Outcome.FAILED, "this configuration did not run when it was recorded")
        return Ended(at_s, Outcome.OUT_OF_MEMORY, f"it needs more than {allowed:g} GB")
