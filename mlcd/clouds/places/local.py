"""`--on local` and `--on local:FILE`: nodes of this machine."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from mlcd.clouds.environment import check_environment
from mlcd.clouds.live_job import live_profiler
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.gpus import UsableGpus, usable_gpus
from mlcd.clouds.local.isolation import isolation_warning, why_not_isolated
from mlcd.clouds.local.workspace import shared_files_warning
from mlcd.clouds.node_types import load_local_types
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Choice, Space
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.train.space import grid, narrow

LOCAL_TIGHT = 0.15
"""A probe on this machine may end at this relative width of the rate's interval, reached after 12 s of measuring."""
LOCAL_WINDOW_S = 15.0
"""Window over which the rate of a run on this machine is measured: its jobs take minutes, not hours."""


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud with the node types of file `rest`; without a file, the default types."""
    clock = WallClock(started_at or datetime.now(UTC))
    node_types = load_local_types(Path(rest) if rest else None)
    backend = replace(local_backend(), clock=clock, startup_s=node_types.startup_s, drill=node_types.drill)
    nodes = (max(job.search.nodes[0], node_types.nodes[0]), min(job.search.nodes[1], node_types.nodes[1]))
    space = grid(node_types.offers, nodes, probe_time=node_types.probe_time, startup_limit_s=node_types.startup_s)
    gpus = usable_gpus() if any(offer.accelerators for offer in space.offers) else UsableGpus(())
    space = node_types.drill.with_markets(narrow(within_gpus(space, gpus), job), job)
    profiler = replace(live_profiler(backend), tight=LOCAL_TIGHT, window_s=LOCAL_WINDOW_S)
    lacks = "; ".join(filter(None, (isolation_warning(), shared_files_warning(job, home()))))
    check = partial(_check, space=space, gpus=gpus, file=rest)
    return Cloud(space, backend, profiler, clock, lacks, check=check)


def local_backend() -> Local:
    """The backend for nodes of this machine."""
    return Local(home(), WallClock(datetime.now(UTC)), isolated=why_not_isolated() is None)


def within_gpus(space: Space, gpus: UsableGpus) -> Space:
    """The part of the space for which this machine has GPUs.

    A type with too few GPUs keeps its smallest node count; `_check` refuses it when a run begins. So `mlcd down` and
    `mlcd clean` work without the GPU.
    """
    return replace(space, choices=tuple(_within_gpus(choice, gpus) for choice in space.choices))


def _within_gpus(choice: Choice, gpus: UsableGpus) -> Choice:
    offer = choice.offer
    if not offer.accelerators or not choice.nodes:
        return choice
    fitting = gpus.fitting(offer)
    memory_gb = min((gpu.memory_mib for gpu in fitting), default=0.0) / 1_024  # in GiB, as vendors and catalogs do
    nodes = tuple(n for n in choice.nodes if n * offer.accelerators <= len(fitting))
    return replace(choice, offer=replace(offer, accelerator_memory_gb=memory_gb), nodes=nodes or choice.nodes[:1])


def _check(job: Job, space: Space, gpus: UsableGpus, file: str) -> None:
    """Refuse a job with unset variables, and types for which this machine has too few GPUs."""
    check_environment(job)
    for choice in space.choices:
        if (shortage := gpus.shortage(choice.offer, min(choice.nodes))) is not None:
            offer = choice.offer
            wanted = f"types.{offer.instance_type}: accelerators {offer.accelerator}:{offer.accelerators}"
            raise UserError(f"{file}: {wanted}: {shortage}")
