"""`--on simulated`: a made-up cloud with real prices; nothing is rented."""

from __future__ import annotations

from datetime import datetime

from mlcd.assemble.clouds import Cloud, unknown_place
from mlcd.assemble.places.prices import infra, priced
from mlcd.backends import Simulated
from mlcd.backends.simulated import STARTUP_LIMIT_S
from mlcd.clock import VirtualClock
from mlcd.job import Job
from mlcd.planners.train import grid, narrow
from mlcd.profilers.training import TrainingProfiler


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The machines of the cloud that the job asks for, or of AWS."""
    if rest:
        raise unknown_place(f"simulated:{rest}")
    offers = priced(job, (infra(job)[0] or "aws",))
    clock = VirtualClock(elapsed_s)
    backend = Simulated(clock, job.search.seed)
    space = grid(offers, job.search.nodes, startup_limit_s=STARTUP_LIMIT_S)
    return Cloud(narrow(space, job), backend, TrainingProfiler(backend), clock)
