"""All uses of Lithops' undocumented internals, in one place: another version may have changed them.

Written for the version below, which `pyproject.toml` requires. The documented parts (FunctionExecutor, its `map`,
futures, the client of a bucket) are used elsewhere, too.
"""

from __future__ import annotations

import atexit
import json
import pickle
import shutil
import sys
import time
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages.storage import one_line

WRITTEN_AGAINST = "3.8"
JOBS = "lithops.jobs"
"""The prefix of Lithops' records of calls in a bucket."""
TIMES = ("worker_start_tstamp", "worker_end_tstamp", "host_submit_tstamp")


def no_such_key() -> type[Exception]:
    """The exception of a bucket for a key that does not exist."""
    from lithops.storage.utils import StorageNoSuchKeyError

    exception: type[Exception] = StorageNoSuchKeyError
    return exception


def temporary_folder() -> str:
    """Lithops' folder on this machine."""
    from lithops.constants import TEMP_DIR

    return str(TEMP_DIR)


def next_job(executor: Any) -> str:
    """The name that Lithops will give to the next `map` of this executor."""
    return f"M{executor.total_jobs:03d}"


def status_keys(bucket: Any, name: str, executor: str, job: str) -> dict[int, str]:
    """The keys of the status objects that the functions of a `map` wrote at their end, by number."""
    keys = bucket.list_keys(name, f"{JOBS}/{executor}-{job}/")
    return {int(key.split("/")[-2]): key for key in keys if key.endswith("/status.json")}


class Answer(NamedTuple):
    """The result of one function: its report or None, the last part of its output, and its start and end if known."""

    report: dict[str, Any] | None
    log: str
    began_at: float | None
    ended_at: float | None
    submitted_at: float | None = None


def answer_of(future: Any, bucket: Any) -> Answer:
    """The answer of a function that has ended."""
    report = future.result(throw_except=False, internal_storage=bucket)
    return Answer(None if future.error else report, future.logs or "", *map(future.stats.get, TIMES))


def parse_answer(status: bytes) -> Answer:
    """The answer in a status object. Lithops stores the result as the repr of its pickle; a long one elsewhere."""
    fields = json.loads(status)
    report = pickle.loads(literal_eval(fields["result"])) if "result" in fields else None
    return Answer(report, "", *map(fields.get, TIMES))


def remove(bucket: Any, name: str, executor: str) -> None:
    """Delete an executor's objects from its bucket, but not those of executors whose name starts with its name."""
    keys = bucket.list_keys(name, f"{JOBS}/{executor}")
    own = [key for key in keys if key.startswith((f"{JOBS}/{executor}/", f"{JOBS}/{executor}-"))]
    bucket.delete_objects(name, own)


def began_at(future: Any) -> float | None:
    """The start of a function that has not answered, if Lithops knows it."""
    return (future._call_status or {}).get("worker_start_tstamp")


def has_ended(executor: Any, future: Any) -> bool:
    """On this machine: whether the process of a function has ended."""
    local, of_job = executor.compute_handler.env, future.job_key
    running = f"{of_job}-{future.call_id}" in local.task_processes
    return not running and bool(future.running or (of_job in local.jobs and local.jobs[of_job].done))


def start_workers(executor: Any) -> None:
    """Start Lithops on this machine without its thread that keeps this process alive while functions run."""
    handler = executor.compute_handler
    handler.job_manager = handler.job_manager or "none"
    handler.env.start()


def stop_watching(executor: Any, futures: Iterable[Any]) -> None:
    """Stop polling the bucket for the answers of these functions."""
    executor.job_monitor.remove(futures)


def kill(executor: Any, futures: Iterable[Any], why: Exception) -> None:
    """On this machine: kill the processes of these functions."""
    executor.compute_handler.clear({future.job_key for future in futures}, exception=why)


def close(executor: Any) -> None:
    """End everything that still runs, and this executor's threads."""
    executor.job_monitor.stop()
    executor.invoker.stop()
    executor.compute_handler.clear()
    atexit.unregister(executor._clean_at_exit)  # it would keep the executor for as long as this process


def pickled_by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, pickled by value: its module cannot be imported where it runs."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


class Deployed(NamedTuple):
    """A call by which Lithops created a function. It is billed, too."""

    memory_mb: int
    seconds: float

    @property
    def gb_s(self) -> float:
        """Billed GB-seconds."""
        return self.memory_mb / 1_024 * self.seconds


def deploy(executor: Any, memory_mb: int) -> list[Deployed]:
    """Create the function unless it exists. On Lambda, returns the calls that this took, observed by hooks in boto3.

    It also turns off Lambda's retries: a function that died would be called again minutes later, twice.
    """
    client: Any = getattr(executor.compute_handler.backend, "lambda_client", None)
    took, memories_mb, calls = list[Deployed](), dict[str, int](), list[tuple[str, float]]()

    def created(params: dict[str, Any], **_: Any) -> None:
        memories_mb[params["FunctionName"]] = params["MemorySize"]

    def began(params: dict[str, Any], **_: Any) -> None:
        calls.append((params["FunctionName"], time.perf_counter()))

    def ended(**_: Any) -> None:
        name, began_s = calls[-1]
        took.append(Deployed(memories_mb.get(name, 0), time.perf_counter() - began_s))

    with ExitStack() as stack:
        if client is not None:
            for event, hook in (
                ("provide-client-params.lambda.CreateFunction", created),
                ("provide-client-params.lambda.Invoke", began),
                ("after-call.lambda.Invoke", ended),
            ):
                client.meta.events.register(event, hook)
                stack.callback(client.meta.events.unregister, event, hook)
        executor.invoker.select_runtime("deployment", memory_mb)
    if took:
        with suppress(Exception):  # the account may lack the permission
            client.put_function_event_invoke_config(FunctionName=calls[-1][0], MaximumRetryAttempts=0)
    return took


def count_requests(bucket: Any, note: Callable[[str], object] = lambda kind: None) -> Callable[[], tuple[int, int]]:
    """Count requests to S3. Returns a function that gives the puts (with lists) and gets since it was last called.

    `note` is called with the kind of each request before it is sent.
    """
    client, counts = bucket.get_client(), {"put": 0, "get": 0}

    def count(request: Any, **_: Any) -> None:
        if (kind := _kind_of(request)) is not None:
            counts[kind] += 1
            note(kind)

    def since_last_call() -> tuple[int, int]:
        taken = counts["put"], counts["get"]
        counts.update(put=0, get=0)
        return taken

    if hasattr(client, "meta"):
        client.meta.events.register("before-send.s3", count)
    return since_last_call


def _kind_of(request: Any) -> str | None:
    """The request as S3 bills it: 'put' or 'get'; None for a delete, which is free."""
    parts = urlsplit(request.url)
    names_key = "/" in parts.path.strip("/") or "list-type" not in parts.query
    if request.method in ("GET", "HEAD"):
        return "get" if names_key else "put"
    is_free = request.method == "DELETE" or "delete" in parse_qs(parts.query, keep_blank_values=True)
    return None if is_free else "put"


@contextmanager
def bucket_errors() -> Iterator[None]:
    """Turn any error of a cloud's client, or of a damaged object, into a `BackendError`."""
    try:
        yield
    except Exception as error:  # the clients' errors share no class
        raise BackendError(f"the bucket cannot be read: {one_line(error)}") from error


def record_refusals(executor: Any) -> Callable[[Any], str]:
    """Record refused calls. Returns a function that gives the reason for a future; empty if its call was not refused.

    Lithops would drop such a call and wait for its answer for ever. It retries only if the backend returns no call id,
    so for a throttled call (error 429) this returns None.
    """
    handler, refusals = executor.compute_handler, dict[tuple[str, str], str]()
    invoke = handler.invoke

    def patient(payload: dict[str, Any]) -> Any:
        try:
            return invoke(payload)
        except Exception as error:  # Lithops' backends raise plain exceptions, with the answer in their words
            if "Error 429" in str(error):
                return None
            refusals.update(
                {(payload["job_key"], call): f"the call was refused: {error}" for call in payload["call_ids"]}
            )
            raise

    handler.invoke = patient
    return lambda future: refusals.get((future.job_key, future.call_id), "")


def register_runtime(executor: Any, runtime: str) -> None:
    """Register the metadata of `runtime`, which is this interpreter, so that Lithops need not start it to get them."""
    executor.internal_storage.put_runtime_meta(_runtime_key(executor, runtime), _metadata())


def remove_files(executor: Any, runtime: str | None) -> None:
    """Delete an executor's objects from its bucket and, with `runtime`, its files on this machine."""
    number, bucket = executor.executor_id, executor.storage
    remove(bucket, bucket.bucket, number)
    if runtime is None:
        return
    from lithops.constants import FN_LOG_FILE, JOBS_DIR, LOGS_DIR, RN_LOG_FILE

    executor.internal_storage.delete_runtime_meta(_runtime_key(executor, runtime))
    for place in (Path(JOBS_DIR), Path(LOGS_DIR)):
        for left in place.glob(f"{number}-*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    for log in (RN_LOG_FILE, FN_LOG_FILE):  # they would grow for ever
        Path(log).unlink(missing_ok=True)


def _runtime_key(executor: Any, runtime: str) -> str:
    return str(executor.compute_handler.get_runtime_key(runtime))


@cache
def _metadata() -> dict[str, Any]:
    from lithops.worker.utils import get_runtime_metadata

    return {**get_runtime_metadata(), "runtime_timeout": None}
