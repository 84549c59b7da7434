"""`--on functions` and `--on functions:PLATFORM`: functions on this machine, simulated ones, or a cloud's."""

from datetime import UTC, datetime

from mlcd.clouds.functions.lithops_functions import LithopsFunctions
from mlcd.clouds.functions.simulated import SimulatedFunctions
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import ProbeTime
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.functions.epoch_model.published import published
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import functions_task
from mlcd.planners.functions.prepare import SIMULATED, THIS_MACHINE
from mlcd.planners.functions.space import calibration_space
from mlcd.planners.functions.storages.local import Endpoints

PROBE_HERE = ProbeTime(90.0, 0.0)


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud for a job on functions, with the space of its calibration probes."""
    task = functions_task(job)
    if job.on == SIMULATED:
        clock = VirtualClock(elapsed_s)
        simulated = SimulatedFunctions(clock, published(task.workload), job.search.seed)
        return Cloud(calibration_space(task), simulated, FunctionsProfiler(simulated), clock)
    wall = WallClock(started_at or datetime.now(UTC))
    endpoints = Endpoints(task.storages, task.endpoints, home() / "storages")
    backend = LithopsFunctions(home(), wall, endpoints, rest or "localhost")
    space = calibration_space(task, PROBE_HERE) if job.on == THIS_MACHINE else calibration_space(task, deploys=True)

    def close() -> None:
        backend.close()
        endpoints.close()

    processes = "functions are processes of this machine, slowed down to their share of a processor"
    lacks = f"{processes}; at {', '.join(task.storages)}; prices are AWS's" if job.on == THIS_MACHINE else ""
    return Cloud(space, backend, FunctionsProfiler(backend), wall, lacks, close=close)
