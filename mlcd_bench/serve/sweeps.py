"""Recorded deployments; one trial shows all concurrencies at which a deployment was measured."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.backend import Launch
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import BackendError
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Look, Watch
from mlcd.planners.serve.known_models import Knowledge, SeenModel
from mlcd.planners.serve.nouns import Level, Served


@dataclass(frozen=True)
class RecordedSweeps:
    """Replays a workload's sweeps exactly as measured."""

    knowledge: Knowledge
    model: SeenModel
    clock: VirtualClock

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """One sweep, which takes the reserved time."""
        seconds, configuration = launch.lifetime_s, launch.configuration
        if seconds is None:
            raise BackendError("a recorded trial lasts for its lifetime, but none is given")
        self.clock.wait(seconds)
        usd, cell = configuration.usd(seconds), self.knowledge.composed(self.model, configuration)
        if cell is None:
            return Measurement(
                configuration, Outcome.FAILED, seconds, usd, detail="it did not run when it was recorded"
            )
        levels = [Level(at, each.rate, 0.0, each.figures, each.figures) for at, each in cell.levels.items()]
        served = Served(cell.figures, cell.figures, levels=tuple(levels))
        return Measurement(configuration, Outcome.OK, seconds, usd, cell.rate, evidence=served)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a recorded server ends with this process."""
