"""`mlcd serve --on local`: a server on this machine, our own or one that is named."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from mlcd.clouds.servers.settings import Settings
from mlcd.clouds.serving.live import Embedded, OpenInference
from mlcd.clouds.serving.on_target import OnTarget, check_target
from mlcd.core.backend import Backend
from mlcd.core.clock import WallClock
from mlcd.core.configuration import ProbeTime
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud, unknown_place
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import INSTANCE, KnobTable, ServingTask, knobs_of, service_of
from mlcd.planners.serve.operators import open_model
from mlcd.planners.serve.space import default_knobs, serving_space

LIVE_NOISE = 0.02
"""Relative error that is assumed of a real trial at the least: seconds cannot see what hours bring."""
LIVE_TIGHT = 0.10
"""With so wide an interval of its rate a real trial may end."""
STARTUP_LIMIT_S = 60.0


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """Every setting of the knobs, on this machine."""
    if rest:
        raise unknown_place(job.on, "serve")
    if service_of(job).language is not None:
        from mlcd.clouds.places.serve.engines import engine_cloud  # with the load of streams

        return engine_cloud(job, started_at)
    wall, service = WallClock(started_at or datetime.now(UTC)), service_of(job)
    endpoint = service.endpoint
    live: Backend = OnTarget(home(), wall) if service.target else Embedded(home(), wall)
    if endpoint is not None:
        live = OpenInference(home(), wall, endpoint=endpoint)
    trial = ProbeTime(service.trial_s, 0.0)
    space = serving_space(service.table or default_knobs(), trial, startup_limit_s=STARTUP_LIMIT_S)
    profiler = ServingProfiler(live, noise_floor=LIVE_NOISE, tight=LIVE_TIGHT)
    return Cloud(space, live, profiler, wall, check=check)


def check(job: Job) -> None:
    """One line for what contradicts itself, before anything is spent."""
    service = service_of(job)
    if service.endpoint is not None:
        if not service.endpoint.command:  # else each trial starts it
            OpenInference(home(), WallClock(datetime.now(UTC)), endpoint=service.endpoint).check()
        return
    if service.target:
        check_target(service, job.folder)
    table, cores = service.table or default_knobs(), os.cpu_count() or 1
    if INSTANCE in table.knobs:
        raise UserError(f"knobs: {INSTANCE}: machines are rented with --on skypilot:CLOUD, not on this one")
    for configuration in serving_space(table).configurations:
        Settings.of(dict(knobs_of(configuration)))
    too_many = [value for value in table.knobs.get("threads", ()) if float(value) > cores]
    if too_many:
        raise UserError(f"knobs: threads {too_many[0]}: this machine has {cores} core{'s' if cores > 1 else ''}")
    check_model(service, table)


def check_model(service: ServingTask, table: KnobTable) -> None:
    """One line for knobs that the model cannot be served with anywhere."""
    fixed = open_model(service.path).batch
    too_large = [value for value in table.knobs.get("batch", ()) if fixed is not None and float(value) > fixed]
    if too_large:
        raise UserError(
            f"knobs: batch {too_large[0]}: the model is exported for a batch of {fixed}; "
            f"export it with a free batch axis, or say `batch: [{fixed}]`"
        )
    weights_gb = (service.model.weights_mb or 0.0) / 1_000
    memory = [float(value) for value in table.knobs.get("memory_gb", ())]
    if memory and max(memory) < weights_gb:
        raise UserError(
            f"knobs: memory_gb {max(memory):g} at the most, but the model's weights alone are {weights_gb:.3g} GB"
        )
