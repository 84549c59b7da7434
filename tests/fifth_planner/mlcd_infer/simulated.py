"""Made-up inference: a machine computes on all its processors, and waits a fixed time for every chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlcd.clouds.virtual import play
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd_infer.nouns import Chunk, Waiting

ITEMS_PER_VCPU_S, WAITS_FOR, STARTUP_S, REPORTS = 40.0, 24, 60.0, 30


def waiting_share(configuration: Configuration) -> float:
    """The larger the chunk, the smaller."""
    assert isinstance(configuration.setting, Chunk)
    return WAITS_FOR / (configuration.setting.items + WAITS_FOR)


@dataclass(frozen=True)
class SimulatedInference:
    """The same every time."""

    clock: VirtualClock
    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        """Simulate one launch."""
        return play(self._events(launch), job, launch, self.clock)

    def reclaim(self, label: str) -> None:
        """Nothing to do: a simulated machine ends with this process."""

    def _events(self, launch: Launch) -> Iterator[Event]:
        configuration = launch.configuration
        share = waiting_share(configuration)
        rate = configuration.nodes * configuration.offer.vcpus * ITEMS_PER_VCPU_S * (1 - share)
        lasts_s = launch.samples / rate if launch.purpose is Purpose.RUN else launch.lifetime_s or 600.0
        for i in range(REPORTS + 1):
            elapsed_s = lasts_s * i / REPORTS
            yield Sample(STARTUP_S + elapsed_s, rate * elapsed_s, evidence=Waiting(share))
        yield Ended(STARTUP_S + lasts_s, Outcome.OK)
