"""`mlcd serve --engine NAME` and `--endpoint URL`: a language model on an engine of this machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from math import prod
from pathlib import Path

from mlcd.clouds.engines.default_knobs import memory_gb
from mlcd.clouds.engines.start import installed_version, kind_of
from mlcd.clouds.engines.trial import Engines, language_of
from mlcd.clouds.load.prompts import from_file
from mlcd.clouds.serving.trial import Timing
from mlcd.core.clock import WallClock
from mlcd.core.configuration import ProbeTime, Space
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.serve.llm.deployment import deployment
from mlcd.planners.serve.llm.flags import command_line
from mlcd.planners.serve.llm.memory import fitting
from mlcd.planners.serve.llm.nouns import LanguageModel
from mlcd.planners.serve.llm.sweep import Steps, SweepProfiler
from mlcd.planners.serve.llm.weights import weight_bytes
from mlcd.planners.serve.nouns import Knobs, ServingTask, knobs_of, service_of
from mlcd.planners.serve.space import serving_space

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "tekken.json", "*.tiktoken")
"""Files by which a folder is recognised to have a tokenizer: at least one of them."""
PATHS = ("/", "./", "../", "~")
"""Prefixes by which a path is told from a model's name."""
OWN_GB = 1.5
"""Memory of the engine's own processes and libraries on a CPU."""
REQUEST_S = 120.0
"""Timeout of a request."""


def engine_cloud(job: Job, started_at: datetime | None) -> Cloud:
    """The place for a language model: every configuration of the engine that fits on this machine."""
    wall, steps = WallClock(started_at or datetime.now(UTC)), Steps()
    service = service_of(job)
    timeout_s = min(REQUEST_S, service.trial_s)  # so that a stalled engine gives the same error after each start
    timing = Timing(language_of(service).engine.startup_s, every_s=0.5, timeout_s=timeout_s)
    backend = Engines(home(), wall, timing, steps)
    return Cloud(engine_space(service, timing), backend, SweepProfiler(backend, steps), wall, check=check)


def engine_space(service: ServingTask, timing: Timing) -> Space:
    """The configurations that fit. A trial's time limit covers start, whole sweep and teardown."""
    language, table = language_of(service), service.table
    if table is None:
        raise ValueError(f"{service.model.name}: its job has no knobs")
    start_s = 0.0 if language.engine.runs_already else timing.startup_s
    trial = ProbeTime(start_s + service.trial_s + timing.teardown_s, 0.0)
    agrees = partial(_agrees, language.engine.command)
    for gpus in table.knobs.get("gpus", ()):
        if not any(agrees(each) for each in _settings(service) if dict(each)["gpus"] == gpus):
            raise UserError(f"knobs: gpus {gpus}: no configuration uses that many: tp x pp x dp must be {gpus}")
    space = serving_space(table, trial, start_s, fits=lambda knobs: agrees(knobs) and _fits_here(language, knobs))
    if not len(space):
        raise UserError(f"{service.model.name}: no configuration fits: {_why_none(service, language)}")
    if language.architecture is None:
        return space
    return fitting(service.model.name, language.architecture, space, _context(language))


def check(job: Job) -> None:
    """UserError for what cannot work, before anything is spent."""
    service = service_of(job)
    language = language_of(service)
    engine, model = language.engine, Path(service.path)
    if language.prompts.file:
        from_file(language.prompts)  # raises if the file cannot be used
    if engine.runs_already:
        Engines(home(), WallClock(datetime.now(UTC)), Timing(timeout_s=REQUEST_S)).check(service)
        return
    if (kind := kind_of(engine)) is not None:
        installed_version(kind, engine.command)
    if service.path.startswith(PATHS) and not model.expanduser().exists():
        raise UserError(f"{service.path}: no such folder; give a folder with a config.json, or a name to download")
    if model.is_dir() and not any(any(model.glob(name)) for name in TOKENIZERS):
        raise UserError(f"{model}: it has no tokenizer: expected one of {', '.join(TOKENIZERS)}")
    table, cores = service.table, os.cpu_count() or 1
    too_many = [value for value in (table.knobs.get("threads", ()) if table else ()) if float(value) > cores]
    if too_many:
        raise UserError(f"knobs: threads {too_many[0]}: this machine has {cores} core{'s' if cores > 1 else ''}")
    for configuration in engine_space(service, Timing()).configurations:
        command_line(engine.name, service.path, dict(knobs_of(configuration)), start=engine.command)


def _agrees(command: str, knobs: Knobs) -> bool:
    """Whether the number of GPUs, if it is a knob that the command does not use, equals what the parallelism uses."""
    set_ = dict(knobs)
    return (
        "gpus" not in set_
        or "{gpus}" in command
        or int(set_["gpus"]) == prod(int(set_.get(name, 1)) for name in ("tp", "pp", "dp"))
    )


def _fits_here(language: LanguageModel, knobs: Knobs) -> bool:
    """Whether weights, KV cache and the engine itself fit into this machine's memory (checked on a CPU only)."""
    needed = _needed_gb(language, knobs)
    return needed is None or needed <= memory_gb()


def _needed_gb(language: LanguageModel, knobs: Knobs) -> float | None:
    place = deployment(knobs)
    if language.architecture is None or place.gpu or "kv_cache_gb" not in dict(knobs):
        return None
    return weight_bytes(language.architecture, place.precision) / 1e9 + place.kv_cache_gb + OWN_GB


def _why_none(service: ServingTask, language: LanguageModel) -> str:
    needed = [gb for each in _settings(service) if (gb := _needed_gb(language, each)) is not None]
    if needed and min(needed) > memory_gb():
        return f"it needs at least {min(needed):,.1f} GB, and this machine has {memory_gb():,.1f} GB"
    return "tp x pp x dp must be the number of gpus"


def _settings(service: ServingTask) -> list[Knobs]:
    """All combinations of knob values, including those that do not fit."""
    return [knobs_of(each) for each in serving_space(service.table).configurations] if service.table is not None else []


def _context(language: LanguageModel) -> int:
    """Tokens of a request: prompt and answer."""
    return language.prompts.input_tokens + language.prompts.output_tokens
