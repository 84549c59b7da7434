"""Trials on live servers of this machine: MLCD's own ONNX server, which needs no setup, or any server that speaks the
Open Inference Protocol v2 (MLServer, Triton, KServe, TorchServe, OpenVINO ...).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlcd.clouds import servers
from mlcd.clouds.launches import before_ordering
from mlcd.clouds.load.generate import Target
from mlcd.clouds.load.oip import Oip, client_for, from_file, from_server, targets
from mlcd.clouds.local.workspace import AnyWorkspace, Workspace, workspace_of
from mlcd.clouds.servers.settings import Settings, other_cores
from mlcd.clouds.serving.trial import Server, Trial, Trials, arrivals_of
from mlcd.core.backend import Events, Launch
from mlcd.core.errors import BackendError, UnknownName, UserError
from mlcd.core.job import SUBMITTED, Job
from mlcd.planners.serve.nouns import Endpoint, Knob, knobs_of, service_of

NAME = "model"


@dataclass(frozen=True)
class Embedded(Trials):
    """Serves a job's model with a launch's knobs and load-tests it. `home` also holds quantised models."""

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the server, load-test it, tear it down."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        settings = Settings.of({name: value for name, value in knobs.items() if name != "concurrency"})
        arrivals, cores = arrivals_of(service, knobs, launch.ordinal), other_cores(settings.threads)
        samples = from_file(service, Path(job.folder))
        with self.begun(launch) as trial:
            server = self._started(trial, job, Path(job.folder) / service.path, settings)
            if (ended := trial.wait_until_ready(server, lambda: _url(server) is not None)) is not None:
                yield ended
                return
            requests = targets(client_for(_url(server) or "", NAME), samples, binary=True)
            yield from trial.load(pinned_to(cores, requests), arrivals)

    def _started(self, trial: Trial, job: Job, model: Path, settings: Settings) -> Server:
        cache = (self.home / "quantised").resolve()
        workspace: AnyWorkspace = Workspace(Path.cwd())
        if job.folder == SUBMITTED:  # members do not share a cache of quantised models
            workspace = workspace_of(job, trial.launch, self.home, trial.folder)
            cache = cache / trial.launch.label.rpartition("-")[0]
        workspace, model_path = workspace.expose("model.onnx", model.resolve())
        workspace, cache_path = workspace.expose("quantised", cache, to_write=True)
        own = ["--name", NAME, "--port", "0", "--cache", cache_path]
        command = [sys.executable, "-m", "mlcd.clouds.servers", model_path, *own, *settings.arguments]
        return trial.start(command, _server_environment(), workspace)


def _url(server: Server) -> str | None:
    """The address in the server's 'ready' line; None until it is printed."""
    match = re.search(r"^ready: (\S+)\n", server.output(), re.MULTILINE)
    return match[1] if match else None


def pinned_to(cores: set[int] | None, make_target: Callable[[], Target]) -> Callable[[], Target]:
    """Pin the load generator to cores that the server does not use. Targets are made in the generator's own thread."""
    if cores is None:
        return make_target

    def make() -> Target:
        os.sched_setaffinity(0, cores)  # of this thread alone
        return make_target()

    return make


def _server_environment() -> dict[str, str]:
    """Environment variables added for our server: the path of our modules, and no threads that it cannot use."""
    package_root, before = str(Path(servers.__file__).parents[3]), os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{package_root}{os.pathsep}{before}" if before else package_root,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


LOAD_KNOBS = ("concurrency",)
"""Knobs of the load, not of the server."""
READY_TIMEOUT_S = 1.0
"""Timeout of a readiness check: a server that hangs is not ready."""


@dataclass(frozen=True)
class OpenInference(Trials):
    """Load-tests a model on a server at http://host:port or grpc://host:port.

    The endpoint's command starts that server for each trial; `{knob}` stands for a knob's value, which is also in the
    environment (MLCD_KNOB_THREADS). Without a command, the server is already running.
    """

    endpoint: Endpoint = field(kw_only=True)
    request_timeout_s: float = 5.0

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the server if there is a command, load-test it, tear it down."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        arrivals, server = arrivals_of(service, knobs, launch.ordinal), self._client(self.request_timeout_s)
        with before_ordering():
            command = self._filled_in(knobs)
            if command and server.is_ready():
                raise UserError(f"{self.endpoint.url}: a server is already running there: stop it first")
            if not command:
                self.check()
        with self.begun(launch) as trial:
            if command:
                workspace: AnyWorkspace = Workspace(Path(job.folder or "."))
                if job.folder == SUBMITTED:
                    workspace = workspace_of(job, launch, self.home, trial.folder)
                variables = {f"MLCD_KNOB_{name.upper()}": str(value) for name, value in knobs.items()}
                started = trial.start(["sh", "-c", command], variables, workspace)
                if (ended := trial.wait_until_ready(started, self._client(READY_TIMEOUT_S).is_ready)) is not None:
                    yield ended
                    return
            samples = from_server(server, service, Path(job.folder))
            yield from trial.load(targets(server, samples, server.takes_bytes()), arrivals)

    def check(self) -> None:
        """UserError, on one line, unless the server is reachable and describes its model."""
        server = self._client(self.request_timeout_s)
        try:
            server.inputs()
        except BackendError as error:
            raise UserError(f"{error}; start the server, or give the command that starts it") from None
        if not server.is_ready():
            raise UserError(f"{self.endpoint.url}: '{self.endpoint.model}' is not ready: look into the server's log")

    def _client(self, timeout_s: float) -> Oip:
        return client_for(self.endpoint.url, self.endpoint.model, timeout_s)

    def _filled_in(self, knobs: Mapping[str, Knob]) -> str:
        """The command with these knobs filled in."""
        if not self.endpoint.command:
            for name in knobs:
                if name not in LOAD_KNOBS:
                    raise UserError(f"knob '{name}': a running server cannot be configured: give its `command:`")
            return ""

        def value(match: re.Match[str]) -> str:
            if match[1] not in knobs:
                raise UnknownName("knob in the command", match[1], knobs)
            return shlex.quote(str(knobs[match[1]]))

        return re.sub(r"(?<!\$)\{(\w+)\}", value, self.endpoint.command)  # ${NAME} is a shell variable
