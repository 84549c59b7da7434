"""Reads untrusted input (job files, models) in a child process with few rights and hard limits.

The child is forked from multiprocessing's fork server, which has the modules loaded: that takes about 20 ms. Its answer
is JSON, which the service validates, never a pickle: a compromised child could send anything. It is killed after a
timeout. Error messages use the file name that the client sent instead of a path of the service.
"""

import json
import logging
import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mlcd.core.errors import MissingExtra, MlcdError, UserError
from mlcd.core.job import Job
from mlcd.core.planner import planner_of
from mlcd.planners.form.jobs import job_from_text, serving_job_of
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.form import recorded_model
from mlcd.planners.serve.model_facts import ModelFacts, Profile
from mlcd.planners.serve.operators import open_model, profile_onnx
from mlcd.planners.serve.operators.onnx_file import LARGEST_FILE
from mlcd.planners.serve.operators.onnx_graph import check_values
from mlcd.planners.serve.operators.onnx_profile import BATCHES, family, kind_of_input
from mlcd.service.web.errors import Refusal
from mlcd.service.workers.process import forkserver
from mlcd.service.workers.submissions import from_json, to_json


@dataclass(frozen=True)
class Limits:
    """Limits of a child. `memory_mb`: in addition to its size at the start. `file_mb`: of each file that it writes."""

    memory_mb: int
    cpu_s: int
    wall_s: float
    file_mb: int = 0


# Reading computes and waits for nothing, so CPU time is what limits it; on busy cores that lasts many times as long.
TEXT = Limits(memory_mb=256, cpu_s=2, wall_s=60.0)  # for a job file: at most 64 KB; a long one has 2 KB
SPACE = Limits(memory_mb=512, cpu_s=10, wall_s=60.0)  # for the search space of a job
MODEL = Limits(memory_mb=1_024, cpu_s=15, wall_s=30.0)  # for a model's file: protobuf needs about three times its size
PASSES = Limits(memory_mb=1_024, cpu_s=30, wall_s=60.0, file_mb=64)  # ONNX Runtime writes a profile
PASSES_MOST_MB, PASSES_TIMES_FILE = 4_096, 16
LONGEST_ANSWER = 16 << 20
AT_ONCE = 4
SLOT_TIMEOUT_S = 20.0  # how long a request waits for a free slot
OPEN_FILES = 64
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "MLCD_HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that the child keeps: it must not see a database's password."""
FACTS = TypeAdapter(ModelFacts)
PROFILES = TypeAdapter(tuple[Profile, ...])
WIDEST = 8  # most bytes of weights per byte of a model's file: a larger claim is refused
LONG_TEXTS = ("setup", "run", "command", "envs")  # may have several lines; other texts appear in messages
_EXTERNAL = 1  # of onnx.TensorProto
Work = Callable[..., str]
_LOG = logging.getLogger("mlcd.service.web")
_slots = threading.BoundedSemaphore(AT_ONCE)


def passes_limits(file_bytes: int) -> Limits:
    """For passes of a model with a file of this size: its weights and results grow with it."""
    return replace(PASSES, memory_mb=min(PASSES_MOST_MB, PASSES.memory_mb + PASSES_TIMES_FILE * (file_bytes >> 20)))


def in_child_process(what: str, limits: Limits, work: Work, *arguments: object) -> str:
    """The text that `work` returns in a child process; `UserError` if it fails or exceeds a limit. `what`: its name."""
    if not _slots.acquire(timeout=SLOT_TIMEOUT_S):
        raise Refusal(429, "the service is reading too many requests; try again in 5 s", {"Retry-After": "5"})
    try:
        reply, exit_code = _run_child(limits, work, arguments)
    finally:
        _slots.release()
    if reply is None:
        _LOG.warning("reading %r: the child ended with %s, and no answer", what, exit_code)
        most = f"{limits.cpu_s} s or {limits.memory_mb} MB"
        raise UserError(f"{what}: refused, since reading it takes more than {most}, or crashes the reader")
    if reply.startswith("!"):
        raise UserError(" ".join(reply[1:].split()))
    return reply[1:]


def _run_child(limits: Limits, work: Work, arguments: tuple[object, ...]) -> tuple[str | None, int | None]:
    """The answer of a child, None if it ends without one; and its exit code."""
    context = forkserver()
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, limits, work, arguments), daemon=True)
    child.start()
    sender.close()
    alarm = threading.Timer(limits.wall_s, child.kill)
    alarm.daemon = True
    alarm.start()
    try:
        reply = _received(receiver)
    finally:
        alarm.cancel()
        alarm.join()
        child.kill()
        child.join()
        receiver.close()
    exit_code = child.exitcode
    child.close()
    return reply, exit_code


def _received(receiver: Connection) -> str | None:
    with suppress(EOFError, OSError, UnicodeError):  # it died, or its answer is malformed
        reply = receiver.recv_bytes(LONGEST_ANSWER).decode("utf-8")
        if reply[:1] in ("=", "!"):
            return reply
    return None


def _answer(out: Connection, limits: Limits, work: Work, arguments: tuple[object, ...]) -> None:
    """The child: drop its rights, do the work, end. Sends '=' and the result, or '!' and an error message."""
    _set_limits(limits)
    try:
        reply = "=" + work(*arguments)
    except MlcdError as error:
        reply = f"!{error}"
    except (MemoryError, RecursionError):
        os._exit(1)  # like a kill: there may be no memory for a message
    except Exception as error:  # any error of a parser is the sender's mistake
        reply = f"!it cannot be read ({type(error).__name__})"
    out.send_bytes(reply.encode("utf-8", "replace"))
    out.close()
    os._exit(0)  # skips exit handlers of modules that the fork server has loaded


def _set_limits(limits: Limits) -> None:
    """Set limits that the process itself cannot raise again (unless it is root)."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in set(os.environ) - set(KEPT_VARIABLES):
        del os.environ[name]
    most = _size() + (limits.memory_mb << 20)
    for kind, value in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _size() -> int:
    """Bytes of address space of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: a generous estimate with the models' libraries
        return 4 << 30


def job_of_text(kind: str, text: str, words: Mapping[str, Any], name: str) -> str:
    """A job file and options, as a job."""
    job = job_from_text(kind, text, words, name)
    planner_of(job).search_strategy(job)  # an unknown method is refused now, not later by a worker
    return _checked_json(job)


def job_of_model(model: str, folder: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A job that serves a model of a recording."""
    facts, counted = recorded_model(model, Path(folder))
    return _checked_json(serving_job_of(facts, words, knobs, counted=counted))


def job_of_upload(facts: ModelFacts, upload: str, words: Mapping[str, Any], knobs: str | None) -> str:
    """A job that serves an uploaded model."""
    return _checked_json(serving_job_of(facts, words, knobs, upload))


def inspect_model(path: str, name: str) -> str:
    """Inspect a model's file without running it; return its facts and operator counts as JSON."""
    with _with_senders_name(path, name):
        message = _self_contained(path)
        model = open_model(path)
        size = Path(path).stat().st_size
        claimed = model.weights_mb * (1 << 20)
        if not 0 <= claimed <= WIDEST * size:
            raise UserError(f"{path}: it claims {claimed:,.0f} bytes of weights, but the file has only {size:,} bytes")
        check_values(path, message)
        kind, billions = kind_of_input(model, {}), model.parameters / 1e9
        facts = ModelFacts(Path(name).stem, family(model), kind, model.weights_mb, billions)
        return json.dumps({"facts": FACTS.dump_python(facts, mode="json"), "operators": dict(model.operators)})


def passes(path: str, name: str, shapes: Mapping[str, int], folder: str) -> str:
    """Run some forward passes of a model and return their profiles. `folder`: ONNX Runtime writes them there."""
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
    configurations = planner_of(job).place(job).space.configurations
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
    is_tensor = message.DESCRIPTOR.name == "TensorProto"
    return is_tensor and (message.data_location == _EXTERNAL or len(message.external_data) > 0)


def _messages(message: Any) -> Iterator[Any]:
    """A message, and all inside it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from _messages(inner)
