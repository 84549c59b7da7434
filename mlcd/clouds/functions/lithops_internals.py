"""What MLCD uses of Lithops that Lithops does not document, all of it here: another version may have changed it.

Written against the version below; `pyproject.toml` asks for no other. What is documented (FunctionExecutor, its `map`,
futures, the client of a bucket) is used where it is needed.
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
"""Where Lithops keeps what it writes about calls, in a bucket."""
TIMES = ("worker_start_tstamp", "worker_end_tstamp", "host_submit_tstamp")


def no_such_key() -> type[Exception]:
    """What a bucket raises for a key that is not there."""
    from lithops.storage.utils import StorageNoSuchKeyError

    found: type[Exception] = StorageNoSuchKeyError
    return found


def temporary_folder() -> str:
    """Where Lithops keeps its files on this machine."""
    from lithops.constants import TEMP_DIR

    return str(TEMP_DIR)


def next_job(executor: Any) -> str:
    """What Lithops will call the next `map` of this executor."""
    return f"M{executor.total_jobs:03d}"


def statuses(bucket: Any, name: str, executor: str, job: str) -> dict[int, str]:
    """The keys of what the functions of a `map` have noted when they ended, by the number of each."""
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


def answer_in(status: bytes) -> Answer:
    """What a status says. Lithops writes an answer as Python writes the bytes of its pickle; a long one elsewhere."""
    noted = json.loads(status)
    report = pickle.loads(literal_eval(noted["result"])) if "result" in noted else None
    return Answer(report, "", *map(noted.get, TIMES))


def remove(bucket: Any, name: str, executor: str) -> None:
    """Remove what an executor has left in its bucket; the names of others may begin as its own does."""
    keys = bucket.list_keys(name, f"{JOBS}/{executor}")
    own = [key for key in keys if key.startswith((f"{JOBS}/{executor}/", f"{JOBS}/{executor}-"))]
    bucket.delete_objects(name, own)


def began_at(future: Any) -> float | None:
    """When a function that has not answered began, if Lithops knows."""
    return (future._call_status or {}).get("worker_start_tstamp")


def has_ended(executor: Any, future: Any) -> bool:
    """On this machine: whether the process of a function has ended."""
    local, of_job = executor.compute_handler.env, future.job_key
    running = f"{of_job}-{future.call_id}" in local.task_processes
    return not running and bool(future.running or (of_job in local.jobs and local.jobs[of_job].done))


def start_workers(executor: Any) -> None:
    """On this machine, without the thread that keeps this process up for as long as any function runs."""
    handler = executor.compute_handler
    handler.job_manager = handler.job_manager or "none"
    handler.env.start()


def stop_watching(executor: Any, futures: Iterable[Any]) -> None:
    """Ask the bucket no more for the answers of these."""
    executor.job_monitor.remove(futures)


def kill(executor: Any, futures: Iterable[Any], why: Exception) -> None:
    """On this machine: end the processes of these."""
    executor.compute_handler.clear({future.job_key for future in futures}, exception=why)


def close(executor: Any) -> None:
    """End everything that still runs, and this executor's threads."""
    executor.job_monitor.stop()
    executor.invoker.stop()
    executor.compute_handler.clear()
    atexit.unregister(executor._clean_at_exit)  # it would keep the executor for as long as this process


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which Lithops will send whole: where it runs, its module cannot be imported."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


class Deployed(NamedTuple):
    """A call that Lithops made to create a function. It is billed, too, by the memory of what was called."""

    memory_mb: int
    seconds: float

    @property
    def gb_s(self) -> float:
        """What it is billed for."""
        return self.memory_mb / 1_024 * self.seconds


def deploy(executor: Any, memory_mb: int) -> list[Deployed]:
    """Create the function unless it exists. On Lambda: the calls that this took, as boto3 tells of them.

    Lambda would call a function that has died again, twice, minutes later, when nobody waits for it any more.
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
        with suppress(Exception):  # the account may not be allowed to
            client.put_function_event_invoke_config(FunctionName=calls[-1][0], MaximumRetryAttempts=0)
    return took


def count_requests(bucket: Any, note: Callable[[str], object] = lambda kind: None) -> Callable[[], tuple[int, int]]:
    """Where the bucket is S3: what tells how many requests to put (or list) and to get were made since it last told.

    `note`: is told the kind of each before it is sent.
    """
    client, asked = bucket.get_client(), {"put": 0, "get": 0}

    def count(request: Any, **_: Any) -> None:
        if (kind := _kind_of(request)) is not None:
            asked[kind] += 1
            note(kind)

    def since() -> tuple[int, int]:
        taken = asked["put"], asked["get"]
        asked.update(put=0, get=0)
        return taken

    if hasattr(client, "meta"):
        client.meta.events.register("before-send.s3", count)
    return since


def _kind_of(request: Any) -> str | None:
    """As S3 bills it: 'put' or 'get'; None: to delete is free."""
    parts = urlsplit(request.url)
    names_key = "/" in parts.path.strip("/") or "list-type" not in parts.query
    if request.method in ("GET", "HEAD"):
        return "get" if names_key else "put"
    is_free = request.method == "DELETE" or "delete" in parse_qs(parts.query, keep_blank_values=True)
    return None if is_free else "put"


@contextmanager
def bucket_errors() -> Iterator[None]:
    """Turn what a cloud's client raises, and what a damaged object does, into a `BackendError`."""
    try:
        yield
    except Exception as error:  # the clients' errors share no class
        raise BackendError(f"the bucket cannot be read: {one_line(error)}") from error


def hear_refusals(executor: Any) -> Callable[[Any], str]:
    """Tells of a future why the platform has refused its call; empty where it has not.

    Lithops would drop such a call, and wait for its answer for ever. It does ask again, after some seconds, where a
    backend returns no id of the call: so it does when it is throttled.
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


def know_runtime(executor: Any, runtime: str) -> None:
    """The interpreter `runtime` is this one, so there is no need to start it and ask what it has."""
    executor.internal_storage.put_runtime_meta(_runtime_key(executor, runtime), _metadata())


def forget(executor: Any, runtime: str | None) -> None:
    """Remove what an executor has left in its bucket and, with `runtime`, in its folders on this machine."""
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
