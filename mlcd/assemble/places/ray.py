"""`--on ray:FILE`: nodes of a Ray cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mlcd.assemble.clouds import Cloud
from mlcd.assemble.home import home
from mlcd.assemble.places.live import live_profiler
from mlcd.backends.ray import Ray, available
from mlcd.clock import WallClock
from mlcd.configuration import Space
from mlcd.job import Job
from mlcd.planners.train import narrow


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """What the cluster has of the node types in the file that is named."""
    clock = WallClock(started_at or datetime.now(UTC))
    node_types, choices = available(job, Path(rest) if rest else None)
    backend = Ray(node_types, home(), clock)
    space = Space(choices, node_types.probe_time, node_types.startup_s)
    return Cloud(narrow(space, job), backend, live_profiler(backend), clock)
