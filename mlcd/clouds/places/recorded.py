"""`--on recorded:DIR`: a recording, replayed."""

from datetime import datetime
from pathlib import Path

from mlcd.clouds.recorded import Recorded
from mlcd.clouds.recording import Recording, load_recording
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.place import Cloud, unknown_place
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.space import narrow


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud of the recording in folder `rest`."""
    if not rest:
        raise unknown_place("recorded")
    return recorded_cloud(load_recording(Path(rest)), job, elapsed_s=elapsed_s)


def recorded_cloud(
    recording: Recording, job: Job, *, noise: float = 0.0, seed: int = 0, elapsed_s: float = 0.0
) -> Cloud:
    """The cloud of a recording. Probes take their full recorded time; the noise is assumed to be `noise`, if given."""
    clock = VirtualClock(elapsed_s)
    backend = Recorded(recording, clock, noise, seed)
    floor = 0.0 if noise else 0.01
    profiler = TrainingProfiler(backend, noise_floor=floor, tight=None, warm_up=False, stated_noise=noise)
    return Cloud(narrow(recording.space, job), backend, profiler, clock)
