"""`mlcd serve` of a language model: makes the job from the options and the knobs file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlcd.clouds.engines.default_knobs import default_knob_table
from mlcd.clouds.engines.start import installed_version, kind_of
from mlcd.clouds.load.openai import OpenAi
from mlcd.clouds.local.gpus import usable_gpus
from mlcd.core.errors import BackendError, UserError
from mlcd.core.job import Job
from mlcd.planners.modeling.architecture import Architecture, read_architecture
from mlcd.planners.serve.form import serving_job
from mlcd.planners.serve.llm.blocks import prompts_of
from mlcd.planners.serve.llm.nouns import SWEEP, Engine, LanguageModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Counted
from mlcd.planners.serve.space import KnobsFile, endpoint_table

USUAL_ENGINE = "vllm"


def language_job(model: str, file: KnobsFile | None, chosen: Mapping[str, Any]) -> Job:
    """The job of serving a language model, from the options and the knobs file."""
    engine, architecture = _engine(file, chosen), _architecture(model)
    price = chosen.get("price")
    if engine.runs_already:
        model = model or _served_at(engine.url)
        table = _endpoint(engine, file, price)
    else:
        if not model:
            raise UserError("no model given; name its folder, or the name by which the engine knows it")
        table = file or KnobsFile(default_knob_table(engine.name, usable_gpus(), price))
        kind = kind_of(engine)
        version = engine.version or (installed_version(kind, engine.command) if kind is not None else "")
        engine = replace(engine, version=version)
    prompts = prompts_of(chosen, file.prompts if file is not None else {})
    if prompts.file:
        prompts = replace(prompts, file=str(Path(prompts.file).resolve()))
    sweep = chosen.get("sweep") or (file.sweep if file is not None else None) or SWEEP
    _check_lengths(prompts.input_tokens + prompts.output_tokens, architecture)
    language = LanguageModel(engine, architecture, prompts, sweep)
    name = Path(model).resolve().name if Path(model).exists() else model
    facts = ModelFacts(name, parameters=architecture.params_b if architecture is not None else None)
    path = str(Path(model).resolve()) if Path(model).exists() else model
    return serving_job(facts, Counted.TOKENS, chosen, path, table, language=language)


def _engine(file: KnobsFile | None, chosen: Mapping[str, Any]) -> Engine:
    """The options override the file."""
    if chosen.get("endpoint"):
        if chosen.get("engine"):
            raise UserError("--engine starts an engine, --endpoint uses one that runs; give only one of them")
        return Engine(url=chosen["endpoint"])
    written = file.engine if file is not None else None
    if chosen.get("engine"):
        engine = replace(written or Engine(), name=chosen["engine"])
        kind_of(engine)  # raises for an unknown name
        return engine
    return written or Engine(USUAL_ENGINE)


def _endpoint(engine: Engine, file: KnobsFile | None, price: float | None) -> KnobsFile:
    if price is None and (file is None or file.engine is None):
        raise UserError(f"{engine.url}: give its price an hour, such as --price 2.50")
    if price is None and file is not None:
        return file
    return replace(file or KnobsFile(endpoint_table("", 0.0)), table=endpoint_table(engine.url, price or 0.0))


def _served_at(url: str) -> str:
    """The name of the model, if the engine has only one."""
    try:
        models = OpenAi(url).models()
    except BackendError as error:
        raise UserError(f"{error}; check that it is running, and has OpenAI's API") from None
    if len(models) != 1:
        raise UserError(f"{url}: name one of its models: {', '.join(models) or 'it has none'}")
    return models[0]


def _architecture(model: str) -> Architecture | None:
    """The sizes of a model that is a local folder, or was downloaded; None if they are not known."""
    if model and Path(model).is_dir():
        return read_architecture(Path(model))
    hub = os.environ.get("HF_HUB_CACHE") or f"{os.environ.get('HF_HOME', '~/.cache/huggingface')}/hub"
    folder = Path(hub).expanduser() / f"models--{model.replace('/', '--')}" / "snapshots"
    found = sorted(folder.glob("*/config.json")) if model else []
    return read_architecture(found[-1]) if found else None


def _check_lengths(tokens: int, architecture: Architecture | None) -> None:
    if architecture is not None and 0 < architecture.context < tokens:
        raise UserError(
            f"a request has {tokens} tokens with its answer, but the model takes at most {architecture.context}: "
            "lower --input-tokens or --output-tokens"
        )
