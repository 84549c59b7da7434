"""Trials on the server that the model will be deployed on (`--target`): MLServer or Triton, with the export's files.

The server is pinned to as many cores as it has threads, like our own; the trial ends if it exceeds `memory_gb`.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from mlcd.clouds.launches import before_ordering
from mlcd.clouds.load.oip import OverHttp, from_file, targets
from mlcd.clouds.local.workspace import Workspace
from mlcd.clouds.servers.quantise import at_precision
from mlcd.clouds.servers.settings import Settings, other_cores, server_cores
from mlcd.clouds.serving.live import LOAD_KNOBS, pinned_to
from mlcd.clouds.serving.trial import Trials, arrivals_of
from mlcd.core.backend import Events, Launch
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.serve.nouns import ServingTask, Window, knobs_of, service_of
from mlcd.planners.serve.operators.onnx_file import files_of
from mlcd.planners.serve.targets import TARGETS, Target

NAME = "model"
READY_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class OnTarget(Trials):
    """Starts the job's target with a launch's knobs and load-tests it."""

    def run(self, job: Job, launch: Launch) -> Events:
        """Write the files, start the server, load-test it, tear it down."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        settings = Settings.of({name: value for name, value in knobs.items() if name not in LOAD_KNOBS})
        arrivals, target = arrivals_of(service, knobs, launch.ordinal), TARGETS[service.target]
        with before_ordering():
            program = installed(service.target)
        samples, ports = from_file(service, Path(job.folder)), _free_ports()
        with self.begun(launch) as trial:
            try:
                model = at_precision(Path(job.folder) / service.path, settings.precision, self.home / "quantised")
            except UserError as error:  # only this precision fails; others may work
                yield Ended(trial.now_s(), Outcome.FAILED, str(error))
                return
            folder = _written(trial.folder / "models", target, settings, model)
            cores = ",".join(map(str, sorted(server_cores(settings.threads))))
            command = ["taskset", "-c", cores, program, *target.arguments(str(folder), ports)]
            server = trial.start(command, target.environment(ports), Workspace(Path.cwd()))
            client = OverHttp(f"http://127.0.0.1:{ports[0]}", NAME, READY_TIMEOUT_S)
            if (ended := trial.wait_until_ready(server, client.is_ready)) is not None:
                yield ended
                return
            loaded = targets(client, samples, client.takes_bytes())
            events = trial.load(pinned_to(other_cores(settings.threads), loaded), arrivals)
            yield from _held_to(settings.memory_gb, client.server(), events)


def installed(target: str) -> str:
    """The path of the program that starts the target; UserError if it cannot be started here."""
    server = TARGETS[target]
    program = shutil.which(server.program)
    if program is None:
        runs = "" if target == server.server else f" ({server.server} serves it there)"
        raise UserError(f"--target {target}: {server.program} is not installed{runs}: {server.install}")
    python = Path(program).with_name("python")
    if server.server == "mlserver" and python.exists():  # models run in MLServer's own Python
        done = subprocess.run([python, "-c", "import onnxruntime"], capture_output=True, check=False)
        if done.returncode:
            raise UserError(f"--target {target}: {program} has no onnxruntime: {python} -m pip install onnxruntime")
    return program


def check_target(service: ServingTask, folder: str) -> None:
    """UserError for a target that cannot run trials here."""
    if folder == SUBMITTED:
        raise UserError("--target: runs of a service use MLCD's own server for ONNX models; leave it out")
    installed(service.target)


def _written(folder: Path, target: Target, settings: Settings, model: Path) -> Path:
    """Write the folder that the server is started with, and link the model's files into it."""
    for path, text in target.files(NAME, settings.batch, settings.max_wait_ms, settings.threads).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    at = folder / target.model_at(NAME)
    at.parent.mkdir(parents=True, exist_ok=True)
    for name, source in files_of(model).items():
        link = at if source == model else at.parent / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source.resolve())
    return folder


def _free_ports() -> tuple[int, int, int]:
    """Three free ports."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        http, grpc, metrics = (each.getsockname()[1] for each in taken)
        return http, grpc, metrics


def _held_to(memory_gb: float | None, server: str, events: Events) -> Events:
    """The events of a load test with the server's name added; ends with out-of-memory above the limit."""
    with closing(events):
        for event in events:
            if not isinstance(event, Sample) or not isinstance(window := event.evidence, Window):
                yield event
                continue
            if memory_gb is not None and (window.peak_gb or 0.0) > memory_gb:
                detail = f"{server} used {window.peak_gb:.2f} GB, more than its limit of {memory_gb:g} GB"
                yield Ended(event.elapsed_s, Outcome.OUT_OF_MEMORY, detail)
                return
            yield replace(event, evidence=replace(window, server=server))
