"""The CPU, memory and GPU usage of a launch's machines."""

import asyncio
from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import Field

from mlcd.clouds.usage import Usage
from mlcd.core.part import Part
from mlcd.service.web.errors import error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.job_logs import JobLogs
from mlcd.service.web.routes.logs import Launch
from mlcd.service.web.routes.runs import CachedViews, RunName
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["files"], responses=error_responses(404, 409))
MOST_POINTS = 400  # more than a chart has room for


class MeasuredMachine(Part):
    """A machine, or a share of one."""

    name: str = Field(description="What it is called.")
    cores: float = Field(description="Cores that the job may use.")
    memory_gib: float = Field(description="Memory in GiB that the job may use.")


class MeasuredGpu(Part):
    """A GPU."""

    name: str = Field(description="Its kind.")
    memory_gib: float = Field(description="How much memory it has.")


class UsagePoint(Part):
    """Usage since the previous point; a value for each machine or GPU, null if it was not read."""

    t: float = Field(description="Seconds since the record began.")
    cpu: list[float | None] = Field(description="Cores that were busy.")
    memory: list[float | None] = Field(description="Average memory in GiB, without reclaimable cache.")
    peak: list[float | None] = Field(description="Peak memory in GiB, without reclaimable cache.")
    gpu: list[float | None] = Field(description="Percent of the time that each GPU was busy.")
    gpu_memory: list[float | None] = Field(description="Peak memory of each GPU in GiB.")
    logs: dict[str, int] = Field(description="Size in bytes of each process's log at this time.")


class PeakOfMemory(Part):
    """The machine that came closest to its limit."""

    machine: str = Field(description="Its name.")
    used_gib: float = Field(description="Its peak in GiB.")
    of_gib: float = Field(description="Its limit in GiB.")
    share: float = Field(description="Peak divided by limit; at 1 a process is killed.")


class MachineUsage(Part):
    """What the machines of a launch used."""

    launch: int = Field(description="Which launch of the run it is of.")
    began_at: str | None = Field(description="When the record began: a time of day, ISO 8601.")
    machines: list[MeasuredMachine] = Field(
        description="The machines; empty where nothing is measured (Ray, SkyPilot)."
    )
    gpus: list[MeasuredGpu] = Field(description="The launch's GPUs.")
    points: list[UsagePoint] = Field(description="In order of time; a long record is thinned out.")
    sentence: str = Field(description="A summary in one line.")
    cpu_share: float | None = Field(description="The average share of all cores that was busy.")
    gpu_percent: float | None = Field(description="The average GPU utilization in percent.")
    memory_peak: PeakOfMemory | None = Field(description="The peak of memory, and the limit.")


@router.get("/runs/{run}/usage", summary="What the machines of a launch used")
async def usage(
    state: CurrentState, run: RunName, views: CachedViews, who: Viewer, launch: Launch = None
) -> MachineUsage:
    """CPU, memory and GPUs over time, where they are measured: on this machine's own nodes."""
    kept = JobLogs(state, await views.snapshot(run))

    def used() -> MachineUsage:
        number, _ = kept.open(launch, 0)
        return _machine_usage(number, kept.usage(number) or Usage(0.0, (), (), ()))

    return await asyncio.to_thread(used)


def _machine_usage(launch: int, usage: Usage) -> MachineUsage:
    began_at = datetime.fromtimestamp(usage.started_at, UTC).isoformat(timespec="seconds") if usage.lines else None
    machines = [MeasuredMachine.model_validate(each) for each in usage.machines]
    gpus = [MeasuredGpu.model_validate(each) for each in usage.gpus]
    points = [UsagePoint.model_validate(each) for each in usage.thinned(MOST_POINTS).lines]
    peak = usage.memory_peak
    return MachineUsage(
        launch=launch,
        began_at=began_at,
        machines=machines,
        gpus=gpus,
        points=points,
        sentence=usage.sentence,
        cpu_share=usage.cpu_share,
        gpu_percent=usage.gpu_percent,
        memory_peak=None if peak is None else PeakOfMemory.model_validate(peak),
    )
