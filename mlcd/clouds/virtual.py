"""Plays simulated or recorded events on a virtual clock, within the lifetime of a launch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from mlcd.core.backend import Events, Launch
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample


def play(events: Iterable[Event], job: Job, launch: Launch, clock: VirtualClock) -> Events:
    """Advance the clock to each event and yield it, until the lifetime is over.

    A job with checkpoints has saved everything it reported, so it exits at once when it is asked to.
    """
    start_s = clock.elapsed_s()
    lifetime_s = math.inf if launch.lifetime_s is None else launch.lifetime_s
    for event in events:
        if event.elapsed_s > lifetime_s:
            # The machines stay up for their whole lifetime, even if there is nothing more to report.
            clock.advance_to(start_s + lifetime_s)
            return
        clock.advance_to(start_s + event.elapsed_s)
        reported = replace(event, saved=event.samples) if job.checkpoints and isinstance(event, Sample) else event
        if (yield reported):
            yield Ended(event.elapsed_s, Outcome.OK)
            return
