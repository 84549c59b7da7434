"""What is done in the child: texts and files of strangers, to JSON that the service checks again.

Messages name things as their sender does: a path of the service is replaced by the name that came with it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mlcd.core.errors import MissingExtra, UserError
from mlcd.core.job import Job
from mlcd.core.planner import planner_of
from mlcd.planners.form.jobs import of_text, serving
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.form import recorded_model
from mlcd.planners.serve.nouns import ModelFacts, Profile
from mlcd.planners.serve.operators import open_model, profile_onnx
from mlcd.planners.serve.operators.facts import BATCHES, family, kind_of_input
from mlcd.planners.serve.operators.onnx_file import LARGEST_FILE
from mlcd.planners.serve.operators.onnx_sizes import check_values
from mlcd.service.workers.asked import from_json, to_json

FACTS = TypeAdapter(ModelFacts)
PROFILES = TypeAdapter(tuple[Profile, ...])
WIDEST = 8
"""Bytes of a number that a file may write as one: a model cannot claim more weights than this times its file."""
LONG_TEXTS = ("setup", "run", "command", "envs")
"""What may have several lines; everything else of a job is told in messages."""
_EXTERNAL = 1  # of onnx.TensorProto


def job_of_text(kind: str, text: str, words: Mapping[str, Any], name: str) -> str:
    """A job file and options, as a job."""
    job = of_text(kind, text, words, name)
    planner_of(job).explore(job)  # a method that nobody knows is told now, and not by a worker later
    return _told(job)


def job_of_recorded(model: str, folder: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A model that a recording knows, to be served."""
    facts, counted = recorded_model(model, Path(folder))
    return _told(serving(facts, words, knobs, counted=counted))


def job_of_upload(facts: str, upload: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A model that was uploaded, to be served."""
    return _told(serving(FACTS.validate_json(facts), words, knobs, upload))


def anatomy(path: str, name: str) -> str:
    """What a model's file tells without being run: facts, and how often each kind of operator stands in it."""
    with _called(path, name):
        whole = _self_contained(path)
        model = open_model(path)
        size = Path(path).stat().st_size
        claimed = model.weights_mb * (1 << 20)
        if not 0 <= claimed <= WIDEST * size:
            raise UserError(f"{path}: its weights are said to be {claimed:,.0f} bytes, and the file has {size:,}")
        check_values(path, whole)
        facts = ModelFacts(
            Path(name).stem, family(model), kind_of_input(model, {}), model.weights_mb, model.parameters / 1e9
        )
        return json.dumps({"facts": FACTS.dump_python(facts, mode="json"), "operators": dict(model.operators)})


def passes(path: str, name: str, shapes: Mapping[str, int], folder: str) -> str:
    """Profiles of some passes of a model. `folder`: where ONNX Runtime may write them down."""
    tempfile.tempdir = folder
    with _called(path, name):
        model = open_model(path)
        found = profile_onnx(model, (model.batch,) if model.batch is not None else BATCHES, shapes)
        return PROFILES.dump_json(found).decode()


def foreseen(asked: str) -> str:
    """How many configurations a job could be tried on, and their types; only at places that are no real ones."""
    from mlcd.planners.functions.prepare import prepared

    job, _ = from_json(asked)
    job = job if not isinstance(job.ask, FunctionsTask) else prepared(job)
    space = planner_of(job).place(job).space
    configurations = space.configurations
    types = dict.fromkeys(each.offer.instance_type for each in configurations)
    return json.dumps({"configurations": len(configurations), "types": list(types)})


def _told(job: Job) -> str:
    """The job as JSON, once nothing in it can forge a line of a log or command somebody's terminal."""
    text = to_json(job, False)
    _check_words(json.loads(text), "the job")
    return text


def _check_words(value: Any, where: str) -> None:
    if isinstance(value, dict):
        _check_words(list(value), where)
        for key, inner in value.items():
            if key not in LONG_TEXTS:
                _check_words(inner, key)
    elif isinstance(value, list):
        for inner in value:
            _check_words(inner, where)
    elif isinstance(value, str) and not value.isprintable():
        raise UserError(f"{where}: a line break or a control character stands where a word should: {value[:80]!a}")


@contextmanager
def _called(path: str, name: str) -> Iterator[None]:
    try:
        yield
    except MissingExtra:
        raise
    except UserError as error:
        raise UserError(str(error).replace(path, name)) from error


def _self_contained(path: str) -> Any:
    """The model; refused if it has weights in other files: an upload is one file, and names no path of ours.

    None where it cannot be read: `open_model` tells that better.
    """
    if Path(path).stat().st_size > LARGEST_FILE:
        return None
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("reading ONNX models", "serve") from None
    try:
        whole = onnx.load(path, load_external_data=False)
    except DecodeError:
        return None
    if any(_is_external(message) for message in _messages(whole)):
        raise UserError(f"{path}: its weights are in other files; save it as one file, and upload that")
    return whole


def _is_external(message: Any) -> bool:
    return message.DESCRIPTOR.name == "TensorProto" and (
        message.data_location == _EXTERNAL or len(message.external_data) > 0
    )


def _messages(message: Any) -> Iterator[Any]:
    """A message, and all inside it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from _messages(inner)
