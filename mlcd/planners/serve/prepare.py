"""A service with everything its trials need: the server, the load, and what models seen before have shown."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mlcd.core.configuration import Space
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.planners.serve.foresight import Expectation, expected_trials
from mlcd.planners.serve.known_models import Anatomy, Kind, Knowledge, knowledge_bases
from mlcd.planners.serve.nouns import KnobTable, service_of
from mlcd.planners.serve.recordings import read_folder

USD_PER_CORE_HOUR, USD_PER_GB_HOUR = 0.04048, 0.004445
"""AWS Fargate's list prices in us-east-1: what a core and a GB cost where nobody says otherwise."""


def usual_knobs() -> KnobTable:
    """What may vary on this machine where no file says it."""
    most = os.cpu_count() or 1
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


def knowledge_for(job: Job) -> Knowledge:
    """What a search may learn from: models of the same kind of machine, fitted to the knobs of this one."""
    service = service_of(job)
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        return read_folder(Path(rest)).knowledge.without(service.model.name)
    table = service.table or usual_knobs()
    if service.endpoint is not None and not service.knowledge:  # nothing is known of how another server behaves
        return _nothing_seen(table)
    return _fitted(knowledge_bases(home() / "knowledge").named(service.knowledge or "cpu"), table)


def expectation(job: Job, space: Space) -> Expectation | None:
    """How many trials the grey-box search expects to need; no other method says."""
    if job.search.method != "grey-box":
        return None
    return expected_trials(knowledge_for(job), job, space, seed=job.search.seed)


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
