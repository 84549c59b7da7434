"""Calls functions through Lithops (lithops.cloud): on this machine, or on the platform that its configuration names.

On this machine every call is a process. Lithops takes its folders from the environment when it is first imported, so it
is imported here, with folders under MLCD's home. It starts a wrapper script of ours as the interpreter, which puts the
launch's mark into the environment, so that the process can be found after a crash, and sets the number of threads. On
another platform nothing is left on this machine, and abandoned functions end by their own timeout. Lithops sends them
only `bootstrap.py`, which fetches all other code from the bucket (`code_package.py`).

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
from importlib import import_module
from pathlib import Path
from typing import Any

from mlcd.clouds.environment import inherited
from mlcd.clouds.functions import lithops_internals
from mlcd.clouds.functions.bootstrap import fetch_code_and_run
from mlcd.clouds.functions.call import Call, CloudCall, Requests, record_deadline
from mlcd.clouds.functions.code_package import store_code
from mlcd.clouds.functions.journal import CallRecord, Journal
from mlcd.clouds.functions.lithops_internals import Deployed
from mlcd.clouds.functions.meter import Bill
from mlcd.clouds.functions.throttle import threads_of
from mlcd.core.errors import BackendError, MissingExtra
from mlcd.planners.functions.storages.storage import one_line

LOCALHOST = "localhost"
POLL_S = 0.02
"""Polling interval on this machine, where a poll lists a folder. On clouds polls are billed: Lithops' own interval."""
PUTS, GETS = 3, 12
"""Most requests of a call to the bucket. Puts: Lithops writes its start and end, rank 0 writes the model."""
ENDING_PUTS = 4
"""List requests (billed as puts) that clean up after a launch, once it has been billed."""
LONGEST_S = {"aws_lambda": 900}
"""The longest call on a platform; Lithops' own default is three minutes."""
SAFE_PATH = re.compile(r"[A-Za-z0-9_/.:-]+")
"""Paths that Lithops accepts as an interpreter."""
_importing = threading.Lock()


class CallRefused(BackendError):
    """The platform did not accept a call: it throttles, or is unreachable."""


class Caller:
    """Calls functions of one memory size for one launch. `mark` is in the environment of every local process."""

    def __init__(self, home: Path, folder: Path, platform: str, memory_mb: int, at_once: int, mark: str) -> None:
        self.folder = folder
        self._platform, self._memory_mb = platform, memory_mb
        self._runtime: str | None = None
        self._closed = self._called = False
        self._code = ""
        self._deployed: list[Deployed] = []
        self.journal = Journal(folder)
        lithops = _lithops(home / "lithops" if platform == LOCALHOST else None)
        with _importing:
            if platform == LOCALHOST:
                self._runtime = _interpreter(folder, memory_mb, mark)
                self._executor = lithops.FunctionExecutor(config=_local_config(self._runtime, at_once), log_level=None)
                lithops_internals.register_runtime(self._executor, self._runtime)
            else:
                self._executor = _cloud_executor(lithops, platform)
                self._refused = lithops_internals.record_refusals(self._executor)
                self._count_requests = lithops_internals.count_requests(self.bucket, self.journal.requested)

    @property
    def bucket(self) -> Any:
        """Lithops' client of the bucket with the functions' data."""
        return self._executor.storage

    def ship(self, folder: str) -> None:
        """Store the code that functions on a cloud need. `folder`: the job's, if it has its own code."""
        self._code = store_code(self.bucket, folder)

    def deploy(self) -> None:
        """On a cloud, let Lithops create the function unless it exists; that takes a few billed calls."""
        if self._platform == LOCALHOST:
            return
        self.journal.deploying()
        took: list[Deployed] = []
        try:
            took = lithops_internals.deploy(self._executor, self._memory_mb)
        except Exception as error:  # Lithops and the clouds' clients raise many types
            raise CallRefused(f"{self._platform} did not create the function: {one_line(error)}") from error
        finally:
            self.journal.deployed(took)
        self._deployed += took

    def call(self, function: Callable[..., Any], orders: Sequence[dict[str, Any]], timeout_s: float) -> Call:
        """Call the function once for each order, all at once. None lives longer than `timeout_s`."""
        is_local = self._platform == LOCALHOST
        if is_local:
            lithops_internals.start_workers(self._executor)
        else:
            orders = [{**order, "code": self._code, "work": function.__name__} for order in orders]
            record_deadline(self.folder, time.time() + timeout_s)
        until = time.time() + timeout_s
        called = self._record(orders, until)
        try:
            futures = self._executor.map(
                function if is_local else lithops_internals.pickled_by_value(fetch_code_and_run),
                [(order,) for order in orders],
                chunksize=1,
                timeout=math.ceil(timeout_s),
                runtime_memory=None if is_local else self._memory_mb,
                include_modules=None,
            )
        except Exception as error:  # Lithops and the clouds' clients raise many types
            self.journal.refused(called.job)
            raise CallRefused(f"{self._platform} did not take the call: {one_line(error)}") from error
        call = self._call(list(futures), until)
        call.job = called.job
        return call

    def _record(self, orders: Sequence[dict[str, Any]], until: float) -> CallRecord:
        """Write the call to the journal, before it is made."""
        called = CallRecord(
            self._executor.executor_id,
            lithops_internals.next_job(self._executor),
            len(orders),
            time.time(),
            until,
            self._memory_mb,
            orders[0]["storage"],
            requests_most=sum(order["requests_most"] or 0 for order in orders),
            gate=orders[0].get("gate", ""),
            backend=self.bucket.backend,
            bucket=self.bucket.bucket,
        )
        self.journal.called(called)
        return called

    def _call(self, futures: list[Any], until: float) -> Call:
        if self._platform == LOCALHOST:
            return Call(futures, self._executor.internal_storage, self._has_died)
        deployed, self._deployed = self._deployed, []
        requests = Requests(len(futures) * PUTS + (0 if self._called else ENDING_PUTS), len(futures) * GETS)
        self._called = True
        return CloudCall(
            futures, self._executor.internal_storage, until, deployed, self._count_requests, requests, self._refused
        )

    def end(self, call: Call, used: Bill) -> None:
        """Close a call: record its usage, and kill functions that still run if they are on this machine."""
        self.journal.ended(call.job, used, time.time())
        lithops_internals.stop_watching(self._executor, call.futures)
        if self._platform == LOCALHOST:
            lithops_internals.kill(self._executor, call.futures, BackendError("given up"))

    def _has_died(self, future: Any) -> str:
        """On this machine: why a function cannot answer any more, if its process has ended; else empty."""
        return "its process ended without an answer" if lithops_internals.has_ended(self._executor, future) else ""

    def close(self) -> None:
        """End everything that still runs, and delete the files of these calls. Idempotent.

        On a cloud, functions cannot be killed. The files of those that still run are kept, to find out their usage.
        """
        if self._closed:
            return
        self._closed = True
        lithops_internals.close(self._executor)
        records = self.journal.read()
        if self._platform != LOCALHOST and records is not None and records.open:
            return
        with suppress(Exception):  # a bucket that cannot be reached now keeps some small objects
            lithops_internals.remove_files(self._executor, self._runtime)


def open_bucket(home: Path, backend: str) -> Any:
    """Lithops' client of a storage, without an executor. `backend`: Lithops' name of it."""
    if backend == LOCALHOST:
        return _lithops(home / "lithops").Storage(config={"lithops": {"storage": LOCALHOST}})
    return _lithops(None).Storage(backend=backend)


def _lithops(place: Path | None) -> Any:
    """Import Lithops with its folders in `place`, or at their default. Only the first import has an effect."""
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
    """A script that runs this Python interpreter with the launch's mark in its environment."""
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
        longest = {"runtime_timeout": LONGEST_S[platform]} if platform in LONGEST_S else {}
        return lithops.FunctionExecutor(backend=platform, log_level=None, **longest)
    except Exception as error:  # a wrong configuration raises many types
        raise BackendError(f"functions:{platform}: Lithops says: {one_line(error)}; see `lithops hello`") from error
