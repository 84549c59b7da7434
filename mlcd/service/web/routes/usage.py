"""What the machines of a launch used while its job ran."""

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
    cores: float = Field(description="How many cores the job may use there.")
    memory_gib: float = Field(description="How much memory the job may use there.")


class MeasuredGpu(Part):
    """A GPU."""

    name: str = Field(description="Its kind.")
    memory_gib: float = Field(description="How much memory it has.")


class UsagePoint(Part):
    """What was used since the point before; a value for each machine or GPU, null where it was not read."""

    t: float = Field(description="Seconds since the record began.")
    cpu: list[float | None] = Field(description="Cores that were busy.")
    memory: list[float | None] = Field(description="Memory in GiB that cannot be taken back, on average.")
    peak: list[float | None] = Field(description="The most of it.")
    gpu: list[float | None] = Field(description="Percent of the time that each GPU was busy.")
    gpu_memory: list[float | None] = Field(description="The most GiB that each GPU used.")
    logs: dict[str, int] = Field(description="Bytes that the log of each process had by then.")


class PeakOfMemory(Part):
    """The machine that came closest to its limit."""

    machine: str = Field(description="Its name.")
    used_gib: float = Field(description="The most that was seen.")
    of_gib: float = Field(description="What it may use.")
    share: float = Field(description="The one in the other: at 1 a process is killed.")


class MachineUsage(Part):
    """What the machines of a launch used."""

    launch: int = Field(description="Which launch of the run it is of.")
    began_at: str | None = Field(description="When the record began: a time of day, ISO 8601.")
    machines: list[MeasuredMachine] = Field(description="None where nothing is measured, as on Ray and SkyPilot.")
    gpus: list[MeasuredGpu] = Field(description="The launch's GPUs.")
    points: list[UsagePoint] = Field(description="In the order of time; a long record is thinned out.")
    sentence: str = Field(description="The same in one line.")
    cpu_share: float | None = Field(description="The share of all cores that was busy, on average.")
    gpu_percent: float | None = Field(description="How busy the GPUs were, on average.")
    memory_peak: PeakOfMemory | None = Field(description="The most memory, and the limit.")


@router.get("/runs/{run}/usage", summary="What the machines of a launch used")
async def usage(
    state: CurrentState, run: RunName, views: CachedViews, who: Viewer, launch: Launch = None
) -> MachineUsage:
    """CPU, memory and GPUs over time, where they are measured: on this machine's own nodes."""
    kept = JobLogs(state, await views.snapshot(run))

    def used() -> MachineUsage:
        number, _ = kept.open(launch, 0)
        return _told(number, kept.usage(number) or Usage(0.0, (), (), ()))

    return await asyncio.to_thread(used)


def _told(launch: int, usage: Usage) -> MachineUsage:
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
