"""Trials on MLCD's own server for ONNX models: a process on this machine, no setup."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlcd.clouds import servers
from mlcd.clouds.load import Target
from mlcd.clouds.load.oip import speak, targets
from mlcd.clouds.local.private_workspace import Workspace
from mlcd.clouds.local.workspace import AnyWorkspace, workspace_of
from mlcd.clouds.servers.settings import Settings, other_cores
from mlcd.clouds.serving.examples import from_file
from mlcd.clouds.serving.trial import Server, Trial, Trials, arrivals_of
from mlcd.core.backend import Events, Launch
from mlcd.core.job import SUBMITTED, Job
from mlcd.planners.serve.nouns import knobs_of
from mlcd.planners.serve.promise import service_of

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
            requests = targets(speak(_url(server) or "", NAME), samples, binary=True)
            yield from trial.load(_pinned_to(cores, requests), arrivals)

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
        return trial.start(command, _environment(), workspace)


def _url(server: Server) -> str | None:
    """The address in its 'ready' line; None before that."""
    match = re.search(r"^ready: (\S+)\n", server.output(), re.MULTILINE)
    return match[1] if match else None


def _pinned_to(cores: set[int], make_target: Callable[[], Target]) -> Callable[[], Target]:
    """Pin the load generator to cores that the server does not use. Targets are made in the generator's own thread."""

    def make() -> Target:
        os.sched_setaffinity(0, cores)  # of this thread alone
        return make_target()

    return make


def _environment() -> dict[str, str]:
    """The server's variables beside the inherited ones: the path of our modules, and no threads that it cannot use."""
    package_root, before = str(Path(servers.__file__).parents[3]), os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{package_root}{os.pathsep}{before}" if before else package_root,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
