"""A backend that plays a list of events, to test profilers."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.job import Job
from mlcd.core.measurement import Event


class Scripted:
    """A backend that emits what it is given, and notes how far it came and that it was torn down."""

    provenance = Provenance.LIVE

    def __init__(self, events: Sequence[Event]) -> None:
        self.events, self.emitted, self.torn_down = events, 0, False

    def run(self, job: Job, launch: Launch) -> Events:
        try:
            for event in self.events:
                self.emitted += 1
                yield event
        finally:
            self.torn_down = True

    def reclaim(self, label: str) -> float:
        return 12.0
