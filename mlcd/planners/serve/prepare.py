"""A service with everything its trials need: the server, the load, and what models seen before have shown."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mlcd.clouds.servers.settings import Settings
from mlcd.clouds.serving import Embedded, OpenInference, RecordedService
from mlcd.core.backend import Backend
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import ProbeTime, Space
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud, under_max_hourly
from mlcd.planners.serve.foresight import Expectation, expected_trials
from mlcd.planners.serve.knobs import KnobTable
from mlcd.planners.serve.knowledge import read_knowledge, shipped, shipped_names
from mlcd.planners.serve.knowledge.recordings import ServingFolder, read_folder
from mlcd.planners.serve.known_models import Anatomy, Kind, Knowledge
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import ServingTask, knobs_of
from mlcd.planners.serve.operators import open_model
from mlcd.planners.serve.promise import service_of
from mlcd.planners.serve.space import serving_space

WHERE = ("local", "recorded:DIR")
LIVE_NOISE = 0.02
"""Relative error that is assumed of a real trial at the least: seconds cannot see what hours bring."""
LIVE_TIGHT = 0.10
"""With so wide an interval of its rate a real trial may end."""
STARTUP_LIMIT_S = 60.0

USD_PER_CORE_HOUR, USD_PER_GB_HOUR = 0.04048, 0.004445
"""AWS Fargate's list prices in us-east-1: what a core and a GB cost where nobody says otherwise."""


def usual_knobs(cores: int | None = None) -> KnobTable:
    """What may vary on this machine where no file says it."""
    most = cores or os.cpu_count() or 1
    threads = tuple(sorted({min(2**i, most) for i in range(7)}))
    return KnobTable(
        {
            "precision": ("fp32", "int8"),
            "threads": threads,
            "batch": (1, 2, 4, 8, 16, 32),
            "memory_gb": (0.25, 0.5, 1.0, 2.0),
        },
        {"threads": USD_PER_CORE_HOUR, "memory_gb": USD_PER_GB_HOUR},
        cores="threads",
        memory="memory_gb",
    )


def service_cloud(job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
    """Where the trials of a service are made."""
    service = service_of(job)
    kind, _, rest = job.on.partition(":")
    if kind == "recorded" and rest:
        folder, clock = read_folder(Path(rest)), VirtualClock(elapsed_s)
        _check_recorded(folder, service)
        backend = RecordedService(folder.knowledge, folder.model(service.model.name), clock, seed=job.search.seed)
        profiler = ServingProfiler(backend, tight=None, warm_up=False)
        space = under_max_hourly(folder.space(service.model.name), job.search)
        return Cloud(space, backend, profiler, clock)
    if kind != "local" or rest:
        raise UnknownName("place to serve at", job.on, WHERE)
    wall = WallClock(started_at or datetime.now(UTC))
    endpoint = service.endpoint
    live: Backend = OpenInference(endpoint, home(), wall) if endpoint is not None else Embedded(home(), wall)
    space = serving_space(
        service.table or usual_knobs(), ProbeTime(service.trial_s, 0.0), startup_limit_s=STARTUP_LIMIT_S
    )
    space = under_max_hourly(space, job.search)
    return Cloud(space, live, ServingProfiler(live, noise_floor=LIVE_NOISE, tight=LIVE_TIGHT), wall)


def _check_recorded(folder: ServingFolder, service: ServingTask) -> None:
    if service.model.name not in folder.models:
        raise UnknownName("recorded model", service.model.name, folder.models)


def knowledge_for(job: Job) -> Knowledge:
    """What a search may learn from: models of the same kind of machine, fitted to the knobs of this one."""
    service = service_of(job)
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        return read_folder(Path(rest)).knowledge.without(service.model.name)
    table = service.table or usual_knobs()
    if service.endpoint is not None and not service.knowledge:  # nothing is known of how another server behaves
        return _nothing_seen(table)
    return _fitted(_named(service.knowledge or "cpu"), table)


def expectation(job: Job, space: Space) -> Expectation | None:
    """How many trials the grey-box search expects to need; no other method says."""
    if job.search.method != "grey-box":
        return None
    return expected_trials(knowledge_for(job), job, space, seed=job.search.seed)


def _named(name: str) -> Knowledge:
    """A knowledge base by its name or by its folder."""
    own = home() / "knowledge" / name
    for folder in (own, Path(name)):
        if (folder / "knowledge.json").is_file():
            return read_knowledge(folder)
    if name in shipped_names():
        return shipped(name)
    raise UserError(
        f"no knowledge base '{name}': expected a folder made by `mlcd learn`, or {', '.join(shipped_names())}"
    )


def _nothing_seen(table: KnobTable) -> Knowledge:
    cell = tuple(name for name in table.knobs if name != "memory_gb")
    memory = "memory_gb" if "memory_gb" in table.knobs else ""
    return Knowledge(Kind.DEVICE, Anatomy(cell, memory=memory), (), source="nothing was measured before")


def _fitted(knowledge: Knowledge, table: KnobTable) -> Knowledge:
    """The part of it that is about these knobs: those not to be set are as they usually are.

    Of a knob that nobody has turned before nothing is known, and so of no model what it does here.
    """
    anatomy = knowledge.anatomy
    if any(name not in (*anatomy.cell, anatomy.host, anatomy.memory) for name in table.knobs):
        return _nothing_seen(table)
    fixed = {name: "fp32" if name == "precision" else None for name in anatomy.cell if name not in table.knobs}
    if None in fixed.values():
        return _nothing_seen(table)
    cell = tuple(name for name in anatomy.cell if name in table.knobs)
    memory = anatomy.memory if anatomy.memory in table.knobs else ""
    host = anatomy.host if anatomy.host in table.knobs else ""
    models = tuple(
        replace(
            model,
            cells={
                tuple((name, value) for name, value in knobs if name in cell): measured
                for knobs, measured in model.cells.items()
                if all(dict(knobs)[name] == value for name, value in fixed.items())
            },
        )
        for model in knowledge.models
    )
    return replace(knowledge, anatomy=Anatomy(cell, host, memory), models=models)


def check_service(job: Job) -> None:
    """One line for what contradicts itself, before anything is spent."""
    service = service_of(job)
    if job.on.partition(":")[0] != "local":
        return
    if service.endpoint is not None:
        if not service.endpoint.command:  # else each trial starts it
            OpenInference(service.endpoint, home(), WallClock(datetime.now(UTC))).check()
        return
    table, cores = service.table or usual_knobs(), os.cpu_count() or 1
    for configuration in serving_space(table).configurations:
        Settings.of(dict(knobs_of(configuration)))
    too_many = [value for value in table.knobs.get("threads", ()) if float(value) > cores]
    if too_many:
        raise UserError(f"knobs: threads {too_many[0]}: this machine has {cores} core{'s' if cores > 1 else ''}")
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
