"""Playing made-up or recorded events as if they happened: on a virtual clock, within a machine's lifetime."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from mlcd.core.backend import Events, Launch
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample


def play(events: Iterable[Event], job: Job, launch: Launch, clock: VirtualClock) -> Events:
    """Move the clock to each event and yield it, until the lifetime of the machines is over.

    A job that checkpoints has saved whatever it has reported, and so it leaves at once when it is asked to.
    """
    start_s = clock.elapsed_s()
    lifetime_s = math.inf if launch.lifetime_s is None else launch.lifetime_s
    for event in events:
        if event.elapsed_s > lifetime_s:
            # They are up until they stop by themselves, whether or not there is something to report.
            clock.advance_to(start_s + lifetime_s)
            return
        clock.advance_to(start_s + event.elapsed_s)
        told = replace(event, saved=event.samples) if job.checkpoints and isinstance(event, Sample) else event
        if (yield told):
            yield Ended(event.elapsed_s, Outcome.OK)
            return
