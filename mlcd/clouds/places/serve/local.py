"""`mlcd serve --on local`: trials on this machine, on our own server or another one."""

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
"""Least relative error of a live trial: a test of seconds cannot show the variation over hours."""
LIVE_TIGHT = 0.10
"""Relative width of the rate's interval at which a live trial may end."""
STARTUP_LIMIT_S = 60.0


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """All combinations of the knobs, on this machine."""
    if rest:
        raise unknown_place(job.on, "serve")
    if service_of(job).language is not None:
        from mlcd.clouds.places.serve.engines import engine_cloud  # only needed for language models

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
    """UserError for contradictions, before anything is spent."""
    service = service_of(job)
    if service.endpoint is not None:
        if not service.endpoint.command:  # otherwise each trial starts it
            OpenInference(home(), WallClock(datetime.now(UTC)), endpoint=service.endpoint).check()
        return
    if service.target:
        check_target(service, job.folder)
    table, cores = service.table or default_knobs(), os.cpu_count() or 1
    if INSTANCE in table.knobs:
        raise UserError(f"knobs: {INSTANCE}: this knob is for rented machines: add --on skypilot:CLOUD")
    for configuration in serving_space(table).configurations:
        Settings.of(dict(knobs_of(configuration)))
    too_many = [value for value in table.knobs.get("threads", ()) if float(value) > cores]
    if too_many:
        raise UserError(f"knobs: threads {too_many[0]}: this machine has {cores} core{'s' if cores > 1 else ''}")
    check_model(service, table)


def check_model(service: ServingTask, table: KnobTable) -> None:
    """UserError for knob values with which the model cannot be served on any machine."""
    fixed = open_model(service.path).batch
    too_large = [value for value in table.knobs.get("batch", ()) if fixed is not None and float(value) > fixed]
    if too_large:
        raise UserError(
            f"knobs: batch {too_large[0]}: the model is exported for a batch of {fixed}; "
            f"export it with a free batch axis, or write `batch: [{fixed}]`"
        )
    weights_gb = (service.model.weights_mb or 0.0) / 1_000
    memory = [float(value) for value in table.knobs.get("memory_gb", ())]
    if memory and max(memory) < weights_gb:
        raise UserError(
            f"knobs: memory_gb is at most {max(memory):g}, but the model's weights alone are {weights_gb:.3g} GB"
        )
