"""`mlcd serve --on recorded:DIR`: trials replayed from recorded load tests."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mlcd.clouds.serving.recorded import RecordedService
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.place import Cloud, unknown_place
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import service_of
from mlcd.planners.serve.recordings import read_folder


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The recorded configurations of a folder."""
    if not rest:
        raise unknown_place("recorded", "serve")
    folder, clock, name = read_folder(Path(rest)), VirtualClock(elapsed_s), service_of(job).model.title
    backend = RecordedService(folder.knowledge, folder.model(name), clock, seed=job.search.seed)
    return Cloud(folder.space(name), backend, ServingProfiler(backend, tight=None, warm_up=False), clock)
