"""What simulated and recorded backends share: playing events on a virtual clock, random numbers, spot availability."""

import math
import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mlcd.core.backend import Events, Launch
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Floats
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample


def play(events: Iterable[Event], job: Job, launch: Launch, clock: VirtualClock) -> Events:
    """Advance the clock to each event and yield it, until the lifetime is over.

    A job with checkpoints is assumed to save at each report, so it exits at once when it is asked to.
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


def launch_rng(seed: int, launch: Launch) -> np.random.Generator:
    """The random generator of one launch. After a crash, the same launch gets the same numbers."""
    name = zlib.crc32(launch.configuration.offer.name.encode())
    return np.random.default_rng([seed, name, launch.configuration.nodes, launch.ordinal])


def spot_remaining_s(seed: int, zone: str, now_s: float, up_s: float, down_s: float) -> float:
    """For how many more seconds the spot market of a zone has machines; 0 if it has none now.

    `up_s`, `down_s`: mean time for which it has machines, and has none; both are exponentially distributed.
    """
    rng = np.random.default_rng([seed, zlib.crc32(zone.encode())])
    ends_s, has_machines = 0.0, bool(rng.random() < 0.5)
    while ends_s <= now_s:
        has_machines = not has_machines
        ends_s += float(rng.exponential(up_s if has_machines else down_s))
    return ends_s - now_s if has_machines else 0.0


def gamma_factors(rng: np.random.Generator, scatter: float, size: int) -> Floats:
    """Independent positive factors with mean 1 and this relative scatter.

    Gamma, because progress is then a gamma process: it never decreases, and its relative error after N reports
    is scatter / sqrt(N) for every N.
    """
    if scatter <= 0:
        return np.ones(size)
    shape = 1 / scatter**2
    factors: Floats = rng.gamma(shape, 1 / shape, size)
    return factors
