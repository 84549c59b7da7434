"""An execution environment of a function: a process with its own file system, limited by control groups.

It sees only the code in /var/task, the layers in /opt, a Python, and a /tmp that is kept between calls. Its vCPUs
follow from its memory; it has at least one while its code is loaded. Unlike AWS, the box does not freeze it between
calls, and code may take longer than ten seconds to load.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from mlcd_box.cloud.functions import bootstrap
from mlcd_box.cloud.functions.control_groups import ControlGroups
from mlcd_box.cloud.functions.pool import CallResult
from mlcd_box.cloud.functions.records import Function
from mlcd_box.cloud.functions.rules import MAX_TIMEOUT_S, vcpus, vcpus_at_init
from mlcd_box.cloud.functions.runtime import Runtime
from mlcd_box.cloud.functions.service import InitFailed
from mlcd_box.image import SHELL

NOBODY = 65534
KEYS = {"AWS_ACCESS_KEY_ID": "ASIABOXBOXBOXBOXBOX2", "AWS_SECRET_ACCESS_KEY": "box", "AWS_SESSION_TOKEN": "box"}


@dataclass
class Sandbox:
    """Creates environments. `folder`: for their files; `endpoint`: the address of AWS for them."""

    box: str
    folder: Path
    runtime: Runtime
    endpoint: str

    def start(self, function: Function) -> ProcessEnvironment:
        """Start an environment and load the function's code; `InitFailed` if that fails."""
        id = uuid4().hex
        folder = self.folder / id
        for name in ("root", "tmp"):
            (folder / name).mkdir(parents=True)
        os.chown(folder / "tmp", NOBODY, NOBODY)
        limits = ControlGroups(self.box, id)
        groups = limits.make(function.memory_mb, vcpus_at_init(function.memory_mb))
        process, requests, answers = self._process(function, id, folder, groups)
        environment = ProcessEnvironment(id, function, folder, limits, process, requests, answers)
        environment.load()
        return environment

    def _process(
        self, function: Function, id: str, folder: Path, groups: list[Path]
    ) -> tuple[subprocess.Popen[bytes], int, int]:
        """Start the process; return it with the ends of its pipes for calls and for answers."""
        (read_calls, calls), (answers, write_answers) = os.pipe(), os.pipe()
        settings = {
            "TASK": str(function.code.folder),
            "OPT": ":".join(str(each.archive.folder) for each in reversed(function.layers)),
            "PREFIXES": ":".join(map(str, self.runtime.prefixes)),
            "CGROUPS": ":".join(map(str, groups)),
            "BOOTSTRAP": str(bootstrap.__file__),
            "PATH": os.environ["PATH"],
        }
        run = [str(self.runtime.python), "-u", "/var/runtime/bootstrap.py", str(read_calls), str(write_answers)]
        variables = [f"{name}={value}" for name, value in self._variables(function, id).items()]
        namespaces = ["unshare", "-m", "-p", "--fork", "--propagation", "private"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*namespaces, "bash", str(SHELL / "function.sh"), str(folder), *variables, *run],
                env=settings,
                pass_fds=(read_calls, write_answers),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(read_calls)
        os.close(write_answers)
        return process, calls, answers

    def _variables(self, function: Function, id: str) -> dict[str, str]:
        """The environment variables of the function, and those that Lambda sets."""
        site = f"/opt/python/lib/{function.runtime}/site-packages"
        return {
            "AWS_DEFAULT_REGION": function.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_LOG_STREAM_NAME": id,
            "AWS_REGION": function.region,
            "LAMBDA_TASK_ROOT": "/var/task",
            "LANG": "en_US.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"/var/task:/opt/python:{site}",
            "_HANDLER": function.handler,
            **self.runtime.variables,
            **KEYS,
            **function.variables,
        }


@dataclass
class ProcessEnvironment:
    """An environment that is a process. `init_s` is known once its code is loaded."""

    id: str
    function: Function
    folder: Path
    limits: ControlGroups
    process: subprocess.Popen[bytes]
    calls: int
    answers: int
    init_s: float = 0.0
    _read: bytes = field(default=b"", repr=False)

    def load(self) -> None:
        """Wait until its code is loaded. The billed time starts with its Python, after its file system was created."""
        try:
            message = self._line(time.time() + MAX_TIMEOUT_S)
        except TimeoutError:
            message = None
        self.init_s = max(0.0, time.time() - self._python_began_at())
        if message is None or message["error"] is not None:
            error = message["error"] if message is not None else _exited("init")
            self.end()
            raise InitFailed(CallResult(json.dumps(error).encode(), "Unhandled", is_alive=False), self.init_s)
        self.limits.set_vcpus(vcpus(self.function.memory_mb))

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> CallResult:
        """Run one call to its end."""
        until_s = time.time() + timeout_s
        event = payload.decode() or "{}"
        call = {"id": request_id, "arn": self.function.arn, "event": event, "until_s": until_s}
        try:
            _write(self.calls, json.dumps(call).encode() + b"\n")
            message = self._line(until_s)
        except BrokenPipeError:
            message = None
        except TimeoutError:
            words = f"{request_id} Task timed out after {timeout_s:.2f} seconds"
            error = {"errorType": "Sandbox.Timedout", "errorMessage": f"RequestId: {words}"}
            return CallResult(json.dumps(error).encode(), "Unhandled", is_alive=False)
        if message is None:
            return CallResult(json.dumps(_exited(request_id)).encode(), "Unhandled", is_alive=False)
        if message["error"] is not None:
            return CallResult(json.dumps(message["error"]).encode(), "Unhandled")
        return CallResult(message["result"].encode())

    def end(self) -> None:
        """End it and delete its files, but for its log."""
        self._kill()
        os.close(self.calls)
        os.close(self.answers)
        self.limits.remove()
        for name in ("root", "tmp"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _kill(self) -> None:
        """Kill the first process of its namespace, which runs as another user and so does not end with its parent."""
        with suppress(OSError):  # it may have ended already
            for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def _line(self, until_s: float) -> dict[str, Any] | None:
        """The next message of the process; None if the process has ended."""
        while b"\n" not in self._read:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, until_s - time.time()))
            if not ready:
                raise TimeoutError
            more = os.read(self.answers, 1 << 16)
            if not more:
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))

    def _python_began_at(self) -> float:
        """When its Python started: `function.sh` touches a file just before."""
        began = self.folder / "began"
        return began.stat().st_mtime if began.exists() else time.time()


def _write(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


def _exited(request_id: str) -> dict[str, str]:
    words = f"RequestId: {request_id} Error: Runtime exited with error: signal: killed"
    return {"errorType": "Runtime.ExitError", "errorMessage": words}
