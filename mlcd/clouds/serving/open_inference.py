"""Trials on anything that speaks the Open Inference Protocol v2: MLServer, Triton, KServe, TorchServe, OpenVINO ..."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlcd.clouds.launches import before_ordering
from mlcd.clouds.load.oip import Oip, speak, targets
from mlcd.clouds.local.private_workspace import Workspace
from mlcd.clouds.local.workspace import AnyWorkspace, workspace_of
from mlcd.clouds.serving.examples import from_server
from mlcd.clouds.serving.trial import Trials, arrivals_of
from mlcd.core.backend import Events, Launch
from mlcd.core.errors import BackendError, UnknownName, UserError
from mlcd.core.job import SUBMITTED, Job
from mlcd.planners.serve.nouns import Endpoint, Knob, knobs_of
from mlcd.planners.serve.promise import service_of

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
                raise UserError(
                    f"{self.endpoint.url}: something answers there before the command was run: end it first"
                )
            if not command:
                self.check()
        with self.begun(launch) as trial:
            if command:
                workspace: AnyWorkspace = Workspace(Path(job.folder or "."))
                if job.folder == SUBMITTED:
                    workspace = workspace_of(job, launch, self.home, trial.folder)
                started = trial.start(["sh", "-c", command], _environment(knobs), workspace)
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
        return speak(self.endpoint.url, self.endpoint.model, timeout_s)

    def _filled_in(self, knobs: Mapping[str, Knob]) -> str:
        """The command with these knobs filled in."""
        if not self.endpoint.command:
            for name in knobs:
                if name not in LOAD_KNOBS:
                    raise UserError(f"knob '{name}': a server that is running already cannot be set: give its command")
            return ""

        def value(match: re.Match[str]) -> str:
            if match[1] not in knobs:
                raise UnknownName("knob in the command", match[1], knobs)
            return shlex.quote(str(knobs[match[1]]))

        return re.sub(r"(?<!\$)\{(\w+)\}", value, self.endpoint.command)  # ${NAME} is a shell variable


def _environment(knobs: Mapping[str, Knob]) -> dict[str, str]:
    return {f"MLCD_KNOB_{name.upper()}": str(value) for name, value in knobs.items()}
