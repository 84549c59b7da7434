"""Playing made-up or recorded events as if they happened: on a virtual clock, within a machine's lifetime."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable

from mlcd.backend import Launch
from mlcd.clock import VirtualClock
from mlcd.measurement import Event


def play(events: Iterable[Event], launch: Launch, clock: VirtualClock) -> Generator[Event, None, None]:
    """Move the clock to each event and yield it, until the lifetime of the machines is over."""
    start_s = clock.elapsed_s()
    lifetime_s = math.inf if launch.lifetime_s is None else launch.lifetime_s
    for event in events:
        if event.elapsed_s > lifetime_s:
            # They are up until they stop by themselves, whether or not there is something to report.
            clock.advance_to(start_s + lifetime_s)
            return
        clock.advance_to(start_s + event.elapsed_s)
        yield event
