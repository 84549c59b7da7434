"""Calling functions through Lithops (lithops.cloud): on this machine, or on whatever platform its configuration names.

On this machine every call is a process. What Lithops leaves behind goes under MLCD's home: it takes its folders from
the environment when it is first imported, so it is imported here, and with that environment. The interpreter that it
starts is a script of ours, which marks the process as one of the launch, so that it can be found again after a crash,
and tells it how many threads are of use. On another platform nothing is left on this machine, and functions that nobody
waits for end by their own timeout.

Results are waited for here: `lithops.wait` looks every 0.1 s, prints, and takes SIGALRM away from the whole process.
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

LOCALHOST = "localhost"
LOOK_EVERY_S = 0.02
"""On this machine a look is a listing of a folder; elsewhere it is paid for, and Lithops' own interval holds."""
GONE_S = 1.0
"""A process that has ended may have answered just before."""
NAMED_SAFELY = re.compile(r"[A-Za-z0-9_/.:-]+")
"""What Lithops takes for the name of an interpreter."""
_importing = threading.Lock()


class CallRefused(BackendError):
    """The platform did not take a call: it throttles, or is not there."""


@dataclass(frozen=True)
class Answer:
    """Of one function: what it reported, or None; the end of its output; when it began and ended, if that is known."""

    report: dict[str, Any] | None
    log: str
    began_at: float | None
    ended_at: float | None


class Call:
    """So many functions that were called at once. `gone`: whether the process of one is known to have ended."""

    def __init__(self, futures: list[Any], bucket: Any, gone: Callable[[Any], bool]) -> None:
        self.futures = futures
        self._bucket, self._gone = bucket, gone
        self._answers: dict[int, Answer] = {}
        self._silent_s: dict[int, float] = {}

    def answers(self) -> list[Answer | None]:
        """Of each function; None for those that still run."""
        for number, future in enumerate(self.futures):
            if number in self._answers:
                continue
            if future.ready or future.success or future.done:
                self._answers[number] = self._answer(future)
            elif self._gone(future) and time.monotonic() > self._silent_s.setdefault(number, self._soon_s()):
                self._answers[number] = Answer(None, "RuntimeError: its process ended without a word", None, None)
        return [self._answers.get(number) for number in range(len(self.futures))]

    def _soon_s(self) -> float:
        return time.monotonic() + GONE_S

    def began_at(self, number: int) -> float | None:
        """When a function that has not answered began, if Lithops knows."""
        return lithops_internals.began_at(self.futures[number])

    def _answer(self, future: Any) -> Answer:
        report = future.result(throw_except=False, internal_storage=self._bucket)
        began_at, ended_at = (future.stats.get(f"worker_{which}_tstamp") for which in ("start", "end"))
        return Answer(None if future.error else report, future.logs or "", began_at, ended_at)


class Caller:
    """Calls functions of one memory size for one launch. `mark` is on every process that it starts on this machine."""

    def __init__(self, home: Path, folder: Path, platform: str, memory_mb: int, at_once: int, mark: str) -> None:
        self.folder = folder
        self._platform, self._memory_mb = platform, memory_mb
        self._runtime: str | None = None
        self._closed = False
        lithops = _lithops(home / "lithops" if platform == LOCALHOST else None)
        with _importing:
            if platform == LOCALHOST:
                self._runtime = _interpreter(folder, memory_mb, mark)
                self._executor = lithops.FunctionExecutor(config=_here(self._runtime, at_once), log_level=None)
                lithops_internals.know_runtime(self._executor, self._runtime)
            else:
                self._executor = _elsewhere(lithops, platform)

    @property
    def bucket(self) -> Any:
        """Lithops' client of the bucket that functions read from."""
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
                include_modules=None if self._platform == LOCALHOST else ["mlcd"],
            )
        except Exception as error:  # whatever Lithops and a cloud's own client raise
            raise CallRefused(f"{self._platform} did not take the call: {_first_line(error)}") from error
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
        """End everything that still runs, and remove what was only for these calls. Once is enough."""
        if self._closed:
            return
        self._closed = True
        lithops_internals.close(self._executor)
        with suppress(Exception):  # a bucket that cannot be reached now keeps some small objects
            lithops_internals.forget(self._executor, self._runtime)


def _lithops(place: Path | None) -> Any:
    """Lithops, with its folders in that place; without one, where it wants them. The first import decides."""
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
    """For as long as this lasts, home and the folder for temporary files are there."""
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
    inside = folder if NAMED_SAFELY.fullmatch(str(folder)) else Path(tempfile.mkdtemp(prefix="mlcd-"))
    script = inside / f"python-{memory_mb}"
    command = f'exec env -i {environment} {shlex.quote(sys.executable)} -P "$@"'
    script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


def _here(runtime: str, at_once: int) -> dict[str, Any]:
    own = {"backend": LOCALHOST, "mode": LOCALHOST, "storage": LOCALHOST, "monitoring": "storage"}
    quiet = {"data_cleaner": False, "telemetry": False, "monitoring_interval": LOOK_EVERY_S}
    return {
        "lithops": {**own, **quiet},
        LOCALHOST: {"runtime": runtime, "version": 2, "worker_processes": at_once},
    }


def _elsewhere(lithops: Any, platform: str) -> Any:
    """As the user's own Lithops configuration says."""
    try:
        return lithops.FunctionExecutor(backend=platform, log_level=None)
    except Exception as error:  # a configuration has many ways to be wrong
        raise BackendError(f"functions:{platform}: Lithops says: {_first_line(error)}; see `lithops hello`") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
