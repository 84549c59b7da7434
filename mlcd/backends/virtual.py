"""Playing made-up or recorded events as if they happened: on a virtual clock, within a machine's lifetime."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import replace

from mlcd.backend import Launch
from mlcd.clock import VirtualClock
from mlcd.job import Job
from mlcd.measurement import Event, Sample


def play(events: Iterable[Event], job: Job, launch: Launch, clock: VirtualClock) -> Generator[Event, None, None]:
    """Move the clock to each event and yield it, until the lifetime of the machines is over.

    A job that checkpoints has saved whatever it has reported.
    """
    start_s = clock.elapsed_s()
    lifetime_s = math.inf if launch.lifetime_s is None else launch.lifetime_s
    for event in events:
        if event.elapsed_s > lifetime_s:
            # They are up until they stop by themselves, whether or not there is something to report.
            clock.advance_to(start_s + lifetime_s)
            return
        clock.advance_to(start_s + event.elapsed_s)
        yield replace(event, saved=event.samples) if job.checkpoints and isinstance(event, Sample) else event
