"""Trials on our own server for ONNX models: a process on this machine, no set-up."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mlcd
from mlcd.clouds.load import Target
from mlcd.clouds.load.oip import speak, targets
from mlcd.clouds.local.apart import OwnPlace
from mlcd.clouds.local.workplace import Workplace, workplace
from mlcd.clouds.servers import Settings, other_cores
from mlcd.clouds.serving.examples import from_file
from mlcd.clouds.serving.trial import Pace, Server, Trial, Trials, arrivals_of, service_of
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.job import SUBMITTED, Job
from mlcd.planners.serve.nouns import knobs_of

NAME = "model"


@dataclass(frozen=True)
class Embedded:
    """Serves a job's model with a launch's knobs and loads it. `home`: where launches and quantised models are kept."""

    home: Path
    clock: Clock
    pace: Pace = field(default_factory=Pace)

    provenance = Provenance.LIVE

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the server, load it, tear it down."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        settings = Settings.of({name: value for name, value in knobs.items() if name != "concurrency"})
        arrivals, cores = arrivals_of(service, knobs, launch.ordinal), other_cores(settings.threads)
        asked = from_file(service, Path(job.folder))
        with self._trials.begun(launch) as trial:
            server = self._started(trial, job, Path(job.folder) / service.path, settings)
            if (ended := trial.until_ready(server, lambda: _url(server) is not None)) is not None:
                yield ended
                return
            made = targets(speak(_url(server) or "", NAME), asked, binary=True)
            yield from trial.loaded(_kept_to(cores, made), arrivals)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a trial."""
        return self._trials.reclaim(label)

    def leftovers(self) -> set[str]:
        """Trials of which anything is left."""
        return self._trials.leftovers()

    @property
    def _trials(self) -> Trials:
        return Trials(self.home, self.clock, self.pace)

    def _started(self, trial: Trial, job: Job, model: Path, settings: Settings) -> Server:
        cache = (self.home / "quantised").resolve()
        place: Workplace = OwnPlace(Path.cwd())
        if job.folder == SUBMITTED:  # members do not share what their models are made into
            place = workplace(job, trial.launch, self.home, trial.folder)
            cache = cache / trial.launch.label.rpartition("-")[0]
        place, model_path = place.show("model.onnx", model.resolve())
        place, cache_path = place.show("quantised", cache, to_write=True)
        own = ["--name", NAME, "--port", "0", "--cache", cache_path]
        command = [sys.executable, "-m", "mlcd.clouds.servers", model_path, *own, *settings.arguments]
        return trial.start(command, _environment(), place)


def _url(server: Server) -> str | None:
    """Where it says it is ready."""
    told = re.search(r"^ready: (\S+)\n", server.output(), re.MULTILINE)
    return told[1] if told else None


def _kept_to(cores: set[int], make_target: Callable[[], Target]) -> Callable[[], Target]:
    """Connections of a load whose thread keeps off the server's cores: they are made in that thread."""

    def make() -> Target:
        os.sched_setaffinity(0, cores)  # of this thread alone
        return make_target()

    return make


def _environment() -> dict[str, str]:
    """What a server gets beside our own variables: where to find our modules, and no threads that it has no use for."""
    here, before = str(Path(mlcd.__file__).parents[1]), os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{here}{os.pathsep}{before}" if before else here,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
