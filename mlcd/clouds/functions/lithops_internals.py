"""What MLCD uses of Lithops that Lithops does not document, all of it here: another version may have changed it.

Written against the version below; `pyproject.toml` asks for no other. What is documented (FunctionExecutor, its `map`,
futures, the client of a bucket) is used where it is needed.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

WRITTEN_AGAINST = "3.8"


def no_such_key() -> type[Exception]:
    """What a bucket raises for a key that is not there."""
    from lithops.storage.utils import StorageNoSuchKeyError

    found: type[Exception] = StorageNoSuchKeyError
    return found


def temporary_folder() -> str:
    """Where Lithops keeps its files on this machine."""
    from lithops.constants import TEMP_DIR

    return str(TEMP_DIR)


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


def know_runtime(executor: Any, runtime: str) -> None:
    """The interpreter `runtime` is this one, so there is no need to start it and ask what it has."""
    executor.internal_storage.put_runtime_meta(_runtime_key(executor, runtime), _metadata())


def forget(executor: Any, runtime: str | None) -> None:
    """Remove what an executor has left in its bucket and, with `runtime`, in its folders on this machine."""
    number, bucket = executor.executor_id, executor.storage
    bucket.delete_objects(bucket.bucket, bucket.list_keys(bucket.bucket, f"lithops.jobs/{number}"))
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
