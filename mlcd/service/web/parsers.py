"""The functions that run in the child: they turn untrusted texts and files into JSON, which the service checks again.

Messages use the sender's names: a path of the service is replaced by the name that was sent.
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
from mlcd.service.workers.submitted import from_json, to_json

FACTS = TypeAdapter(ModelFacts)
PROFILES = TypeAdapter(tuple[Profile, ...])
WIDEST = 8
"""Most bytes of weights per byte of a model's file: a larger claim is refused."""
LONG_TEXTS = ("setup", "run", "command", "envs")
"""Keys that may have several lines; all other texts of a job appear in messages."""
_EXTERNAL = 1  # of onnx.TensorProto


def job_of_text(kind: str, text: str, words: Mapping[str, Any], name: str) -> str:
    """A job file and options, as a job."""
    job = of_text(kind, text, words, name)
    planner_of(job).explore(job)  # an unknown method is refused now, not later by a worker
    return _checked_json(job)


def job_of_recorded(model: str, folder: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A job that serves a model of a recording."""
    facts, counted = recorded_model(model, Path(folder))
    return _checked_json(serving(facts, words, knobs, counted=counted))


def job_of_upload(facts: str, upload: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A job that serves an uploaded model."""
    return _checked_json(serving(FACTS.validate_json(facts), words, knobs, upload))


def anatomy(path: str, name: str) -> str:
    """What a model's file says without being run: facts, and the count of each kind of operator."""
    with _with_senders_name(path, name):
        message = _self_contained(path)
        model = open_model(path)
        size = Path(path).stat().st_size
        claimed = model.weights_mb * (1 << 20)
        if not 0 <= claimed <= WIDEST * size:
            raise UserError(f"{path}: it claims {claimed:,.0f} bytes of weights, but the file has {size:,}")
        check_values(path, message)
        facts = ModelFacts(
            Path(name).stem, family(model), kind_of_input(model, {}), model.weights_mb, model.parameters / 1e9
        )
        return json.dumps({"facts": FACTS.dump_python(facts, mode="json"), "operators": dict(model.operators)})


def passes(path: str, name: str, shapes: Mapping[str, int], folder: str) -> str:
    """Profiles of some passes of a model. `folder`: ONNX Runtime writes them there."""
    tempfile.tempdir = folder
    with _with_senders_name(path, name):
        model = open_model(path)
        profiles = profile_onnx(model, (model.batch,) if model.batch is not None else BATCHES, shapes)
        return PROFILES.dump_json(profiles).decode()


def preview_of(submitted: str) -> str:
    """The number of configurations in a job's space, and their types; only for simulated and recorded places."""
    from mlcd.planners.functions.prepare import prepared

    job, _ = from_json(submitted)
    job = job if not isinstance(job.ask, FunctionsTask) else prepared(job)
    space = planner_of(job).place(job).space
    configurations = space.configurations
    types = dict.fromkeys(each.offer.instance_type for each in configurations)
    return json.dumps({"configurations": len(configurations), "types": list(types)})


def _checked_json(job: Job) -> str:
    """The job as JSON, after checking that no text in it can fake a log line or control a terminal."""
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
        raise UserError(f"{where}: contains a line break or a control character: {value[:80]!a}")


@contextmanager
def _with_senders_name(path: str, name: str) -> Iterator[None]:
    try:
        yield
    except MissingExtra:
        raise
    except UserError as error:
        raise UserError(str(error).replace(path, name)) from error


def _self_contained(path: str) -> Any:
    """The model; refused if it has weights in other files, since an upload is one file and must not name our paths.

    None if it cannot be read: `open_model` has a better message.
    """
    if Path(path).stat().st_size > LARGEST_FILE:
        return None
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("reading ONNX models", "serve") from None
    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError:
        return None
    if any(_is_external(message) for message in _messages(model)):
        raise UserError(f"{path}: its weights are in other files; save it as one file, and upload that")
    return model


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
