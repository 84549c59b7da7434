"""`--on simulated`: a simulated cloud with real prices; nothing is rented."""

from datetime import datetime

from mlcd.clouds.places.prices import catalog_offers, check_types, cloud_and_region, with_markets
from mlcd.clouds.simulated import STARTUP_LIMIT_S, Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.place import Cloud, unknown_place
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.space import grid, narrow


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The simulated cloud, with the machines of the cloud that the job requires, or of AWS."""
    if rest:
        raise unknown_place(f"simulated:{rest}")
    clouds = (cloud_and_region(job)[0] or "aws",)
    offers = catalog_offers(job, clouds)
    clock = VirtualClock(elapsed_s)
    backend = Simulated(clock, job.search.seed)
    space = grid(offers, job.search.nodes, startup_limit_s=STARTUP_LIMIT_S)
    space = with_markets(narrow(space, job), job, clouds)
    if started_at is None:
        check_types(job, clouds)
    return Cloud(space, backend, TrainingProfiler(backend), clock)
