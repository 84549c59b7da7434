"""`--on ray:FILE`: nodes of a Ray cluster."""

from datetime import UTC, datetime
from pathlib import Path

from mlcd.clouds.environment import check_environment
from mlcd.clouds.live_job import live_profiler
from mlcd.clouds.ray.backend import Ray, available
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Space
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.train.space import narrow


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud with the cluster's nodes of the types in file `rest`."""
    clock = WallClock(started_at or datetime.now(UTC))
    node_types, choices = available(job, Path(rest) if rest else None)
    backend = Ray(node_types, home(), clock)
    space = Space(choices, node_types.probe_time, node_types.startup_s)
    space = node_types.drill.with_markets(narrow(space, job), job)
    return Cloud(space, backend, live_profiler(backend), clock, check=check_environment)
