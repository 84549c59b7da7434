"""Calls functions through Lithops (lithops.cloud): on this machine, or on the platform that its configuration names.

On this machine every call is a process. Lithops takes its folders from the environment when it is first imported, so it
is imported here, with folders under MLCD's home. It starts a wrapper script of ours as the interpreter, which puts the
launch's mark into the environment, so that the process can be found after a crash, and sets the number of threads. On
another platform nothing is left on this machine, and abandoned functions end by their own timeout.

Results are polled here, since `lithops.wait` polls only every 0.1 s, prints, and takes SIGALRM from the whole process.
"""

from __future__ import annotations

import logging
import math
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mlcd.clouds.environment import inherited
from mlcd.clouds.functions import lithops_internals
from mlcd.clouds.functions.throttle import threads_of
from mlcd.core.errors import BackendError, MissingExtra
from mlcd.planners.functions.storages.storage import one_line

LOCALHOST = "localhost"
POLL_S = 0.02
"""Polling interval on this machine, where a poll lists a folder. On clouds polls are billed: Lithops' own interval."""
ANSWER_GRACE_S = 1.0
"""A process may have answered just before it ended: wait so long for that answer."""
SAFE_PATH = re.compile(r"[A-Za-z0-9_/.:-]+")
"""Paths that Lithops accepts as an interpreter."""
_importing = threading.Lock()


class CallRefused(BackendError):
    """The platform did not accept a call: it throttles, or is unreachable."""


@dataclass(frozen=True)
class Answer:
    """The result of one function: its report or None, the last part of its output, and its start and end if known."""

    report: dict[str, Any] | None
    log: str
    began_at: float | None
    ended_at: float | None


class Call:
    """Functions that were called together. `gone`: whether the process of one is known to have ended."""

    def __init__(self, futures: list[Any], bucket: Any, gone: Callable[[Any], bool]) -> None:
        self.futures = futures
        self._bucket, self._gone = bucket, gone
        self._answers: dict[int, Answer] = {}
        self._deadlines_s: dict[int, float] = {}

    def answers(self) -> list[Answer | None]:
        """The answer of each function; None for those that still run."""
        for number, future in enumerate(self.futures):
            if number in self._answers:
                continue
            if future.ready or future.success or future.done:
                self._answers[number] = self._answer(future)
            elif self._gone(future) and time.monotonic() > self._deadlines_s.setdefault(
                number, time.monotonic() + ANSWER_GRACE_S
            ):
                self._answers[number] = Answer(None, "RuntimeError: its process ended without an answer", None, None)
        return [self._answers.get(number) for number in range(len(self.futures))]

    def began_at(self, number: int) -> float | None:
        """When a function that has not answered began, if Lithops knows."""
        return lithops_internals.began_at(self.futures[number])

    def _answer(self, future: Any) -> Answer:
        report = future.result(throw_except=False, internal_storage=self._bucket)
        began_at, ended_at = (future.stats.get(f"worker_{which}_tstamp") for which in ("start", "end"))
        return Answer(None if future.error else report, future.logs or "", began_at, ended_at)


class Caller:
    """Calls functions of one memory size for one launch. `mark` is in the environment of every local process."""

    def __init__(self, home: Path, folder: Path, platform: str, memory_mb: int, at_once: int, mark: str) -> None:
        self.folder = folder
        self._platform, self._memory_mb = platform, memory_mb
        self._runtime: str | None = None
        self._closed = False
        lithops = _lithops(home / "lithops" if platform == LOCALHOST else None)
        with _importing:
            if platform == LOCALHOST:
                self._runtime = _interpreter(folder, memory_mb, mark)
                self._executor = lithops.FunctionExecutor(config=_local_config(self._runtime, at_once), log_level=None)
                lithops_internals.know_runtime(self._executor, self._runtime)
            else:
                self._executor = _cloud_executor(lithops, platform)

    @property
    def bucket(self) -> Any:
        """Lithops' client of the bucket with the functions' data."""
        return self._executor.storage

    def call(self, function: Callable[..., Any], orders: Sequence[dict[str, Any]], timeout_s: float) -> Call:
        """Call the function once for each order, all at once. None lives longer than `timeout_s`."""
        if self._platform == LOCALHOST:
            lithops_internals.start_workers(self._executor)
        try:
            futures = self._executor.map(
                function,
                [(order,) for order in orders],
                chunksize=1,
                timeout=math.ceil(timeout_s),
                runtime_memory=None if self._platform == LOCALHOST else self._memory_mb,
                include_modules=None if self._platform == LOCALHOST else ["mlcd", "mlcd_bench"],
            )
        except Exception as error:  # Lithops and the clouds' clients raise many types
            raise CallRefused(f"{self._platform} did not take the call: {one_line(error)}") from error
        return Call(list(futures), self._executor.internal_storage, self._gone)

    def end(self, call: Call) -> None:
        """Have done with a call; functions that still run are ended where that can be done."""
        lithops_internals.stop_watching(self._executor, call.futures)
        if self._platform == LOCALHOST:
            lithops_internals.kill(self._executor, call.futures, BackendError("given up"))

    def _gone(self, future: Any) -> bool:
        """Whether a function's process has ended; elsewhere nobody knows, and its timeout tells."""
        return self._platform == LOCALHOST and lithops_internals.has_ended(self._executor, future)

    def close(self) -> None:
        """End everything that still runs, and delete the files of these calls. Idempotent."""
        if self._closed:
            return
        self._closed = True
        lithops_internals.close(self._executor)
        with suppress(Exception):  # a bucket that cannot be reached now keeps some small objects
            lithops_internals.forget(self._executor, self._runtime)


def _lithops(place: Path | None) -> Any:
    """Import Lithops with its folders in `place`, or in its default ones. Only the first import counts."""
    with _importing:
        if "lithops" not in sys.modules:
            try:
                with _folders_in(place) if place is not None else nullcontext():
                    import_module("lithops")
            except ImportError:
                raise MissingExtra("running on functions", "lithops") from None
            logging.getLogger("lithops").setLevel(logging.CRITICAL)
        return sys.modules["lithops"]


@contextmanager
def _folders_in(place: Path) -> Iterator[None]:
    """Point HOME and TMPDIR to this folder while the block runs."""
    place.mkdir(parents=True, exist_ok=True)
    before, folder = {name: os.environ.get(name) for name in ("HOME", "TMPDIR")}, tempfile.tempdir
    os.environ.update(dict.fromkeys(before, str(place)))
    tempfile.tempdir = None
    try:
        yield
    finally:
        tempfile.tempdir = folder
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _interpreter(folder: Path, memory_mb: int, mark: str) -> str:
    """This interpreter, as a script that marks what it starts. Lithops' folders are where this process has them."""
    threads = str(threads_of(memory_mb))
    variables = {
        **inherited(),
        "MLCD_LAUNCH": mark,
        "TMPDIR": lithops_internals.temporary_folder(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        **{f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")},
    }
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    inside = folder if SAFE_PATH.fullmatch(str(folder)) else Path(tempfile.mkdtemp(prefix="mlcd-"))
    script = inside / f"python-{memory_mb}"
    command = f'exec env -i {environment} {shlex.quote(sys.executable)} -P "$@"'
    script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


def _local_config(runtime: str, at_once: int) -> dict[str, Any]:
    own = {"backend": LOCALHOST, "mode": LOCALHOST, "storage": LOCALHOST, "monitoring": "storage"}
    quiet = {"data_cleaner": False, "telemetry": False, "monitoring_interval": POLL_S}
    return {"lithops": {**own, **quiet}, LOCALHOST: {"runtime": runtime, "version": 2, "worker_processes": at_once}}


def _cloud_executor(lithops: Any, platform: str) -> Any:
    """An executor with the user's own Lithops configuration."""
    try:
        return lithops.FunctionExecutor(backend=platform, log_level=None)
    except Exception as error:  # a wrong configuration raises many types
        raise BackendError(f"functions:{platform}: Lithops says: {one_line(error)}; see `lithops hello`") from error
