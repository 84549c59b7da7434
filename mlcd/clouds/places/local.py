"""`--on local` and `--on local:FILE`: nodes of this machine."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mlcd.clouds.environment import check_environment
from mlcd.clouds.live import live_profiler
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import what_nodes_lack, why_not_isolated
from mlcd.clouds.local.workspace import what_probes_share
from mlcd.clouds.node_types import load_local_types
from mlcd.core.clock import WallClock
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.train.space import grid, narrow

LOCAL_TIGHT = 0.15
"""Relative width of the rate's interval at which a probe on this machine may end: after 12 s of measuring."""
LOCAL_WINDOW_S = 15.0
"""Window over which the rate of a run on this machine is watched: its jobs take minutes, not hours."""


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """Node types of the file that is named, or the usual ones."""
    clock = WallClock(started_at or datetime.now(UTC))
    node_types = load_local_types(Path(rest) if rest else None)
    backend = replace(local_backend(), clock=clock, startup_s=node_types.startup_s)
    nodes = (max(job.search.nodes[0], node_types.nodes[0]), min(job.search.nodes[1], node_types.nodes[1]))
    space = grid(node_types.offers, nodes, probe_time=node_types.probe_time, startup_limit_s=node_types.startup_s)
    profiler = replace(live_profiler(backend), tight=LOCAL_TIGHT, window_s=LOCAL_WINDOW_S)
    lacks = "; ".join(filter(None, (what_nodes_lack(), what_probes_share(job, home()))))
    return Cloud(narrow(space, job), backend, profiler, clock, lacks, check=check_environment)


def local_backend() -> Local:
    """The nodes of this machine."""
    return Local(home(), WallClock(datetime.now(UTC)), isolated=why_not_isolated() is None)
