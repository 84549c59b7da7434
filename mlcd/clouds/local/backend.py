"""The local backend: runs real jobs on real nodes of this machine."""

import codecs
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import mlcd.clouds.local.teardown as teardown
import mlcd_tracker
from mlcd.clouds.drill import NO_DRILL, Drill
from mlcd.clouds.environment import check_environment
from mlcd.clouds.frameworks import checkpoint_environment
from mlcd.clouds.launches import MAX_READ_BYTES, before_ordering
from mlcd.clouds.live_job import LiveJob, Timeouts
from mlcd.clouds.local.gpus import HeldGpus
from mlcd.clouds.local.isolation import IsolatedNodes, PlainNodes
from mlcd.clouds.local.reclaim import OnThisMachine
from mlcd.clouds.local.workspace import AnyWorkspace, workspace_of
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.job import Job
from mlcd.core.measurement import largest

STARTUP_LIMIT_S = 90.0
"""Timeout of the first report, as in `nodes.yaml`."""
REPORT_TIMEOUT_S = 60.0
"""Timeout of the next report, after the first one."""
OUT_OF_MEMORY = b"\nmlcd: out of memory: the kernel has killed a process of this node, whose memory was full\n"
TEARDOWN_S = teardown.GRACE_S + 1.0
"""Reserved at the end of a lifetime for teardown."""


@dataclass(frozen=True)
class Local(OnThisMachine):
    """Runs jobs on nodes of this machine. `home`: the state folder, with launches and checkpoints."""

    home: Path
    clock: Clock
    startup_s: float = STARTUP_LIMIT_S
    isolated: bool = True
    hangs_after_s: float = REPORT_TIMEOUT_S
    drill: Drill = NO_DRILL

    def run(self, job: Job, launch: Launch) -> Events:
        """Bring the nodes up, run the job on them, tear them down."""
        return self.drill.run(self._run, job, launch, self.clock.elapsed_s())

    def _run(self, job: Job, launch: Launch) -> Events:
        started_s = self.clock.elapsed_s()
        check_environment(job)
        with before_ordering():
            gpus = HeldGpus(launch.configuration)
        with gpus, ExitStack() as stack:
            folder = self.launches.open(launch)
            stack.enter_context(teardown.Watchdog(folder, launch.lifetime_s, gpus.descriptors))
            processes: list[_Process] = []
            stack.callback(teardown.tear_down, folder, reap=partial(_close, processes))
            workspace, environment = self._prepared(job, launch, folder)
            node_class = IsolatedNodes if self.isolated else PlainNodes
            machines = node_class(teardown.mark_of(folder), launch.configuration.offer, launch.configuration.nodes)
            nodes = _Nodes(folder, workspace, machines, gpus, processes)
            stack.enter_context(Recorder(folder, machines.meters(), gpus.gpus))
            timeouts = Timeouts(self.startup_s, self.hangs_after_s, TEARDOWN_S)
            live = LiveJob(job, launch, nodes, self.clock, timeouts, started_s, environment)
            yield from live.events()
            if job.checkpoints and live.has_finished:  # a probe that completed the work is the final run
                workspace.copy_back()

    def _prepared(self, job: Job, launch: Launch, folder: Path) -> tuple[AnyWorkspace, dict[str, str]]:
        """The workspace of the processes, and their environment variables besides those of the framework."""
        workspace = workspace_of(job, launch, self.home, folder)
        shutil.copytree(Path(mlcd_tracker.__file__).parent, folder / "tracker" / "mlcd_tracker", dirs_exist_ok=True)
        workspace, tracker = workspace.expose("tracker", folder / "tracker")
        python_path = os.environ.get("PYTHONPATH")
        variables = {
            "MLCD_LAUNCH": teardown.mark_of(folder),
            "OMP_NUM_THREADS": str(max(1, round(launch.configuration.offer.vcpus))),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": f"{tracker}{os.pathsep}{python_path}" if python_path else tracker,
            "PYTHONUNBUFFERED": "1",
        }
        if job.checkpoints:
            folder_of_run = self.home / "checkpoints" / launch.label.rpartition("-")[0]
            workspace, visible_path = workspace.expose("checkpoints", folder_of_run, to_write=True)
            variables |= checkpoint_environment(visible_path, launch.label)
        return workspace, variables


@dataclass
class _Process:
    """A process on a node. Its output goes to a file, so that it survives this process."""

    popen: subprocess.Popen[bytes]
    log: IO[bytes]
    out_of_memory: Callable[[], bool]
    decoder: io.IncrementalNewlineDecoder = field(
        default_factory=lambda: io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), True)
    )
    ended: bool = False

    def status(self) -> int | None:
        """Its exit status. If the node ran out of memory, adds that to the log: a killed process cannot say it."""
        status = self.popen.poll()
        if status is not None and not self.ended:
            self.ended = True
            if status and self.out_of_memory():
                with open(self.log.name, "ab", opener=_no_symlink) as output:
                    output.write(OUT_OF_MEMORY)
        return status

    def read(self) -> str:
        """New output; only the last part if it is more than `MAX_READ_BYTES`, since a job can write any amount."""
        size = os.fstat(self.log.fileno()).st_size
        if size - self.log.tell() > MAX_READ_BYTES:
            self.log.seek(size - MAX_READ_BYTES)
        return self.decoder.decode(self.log.read(MAX_READ_BYTES))


@dataclass
class _Nodes:
    """The nodes of a launch, and the processes on them."""

    folder: Path
    workspace: AnyWorkspace
    nodes: IsolatedNodes | PlainNodes
    gpus: HeldGpus
    started: list[_Process]

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.nodes.addresses

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> _Process:
        log = self.folder / f"{len(self.started)}.log"
        # The GPUs come last, so that neither the job's `envs:` nor MLCD's environment gives a node other GPUs.
        variables = {**self.nodes.environment, **environment, **self.gpus.variables(node)}
        line = self.workspace.command_line(command, variables)
        with log.open("wb") as output:
            self.workspace.grant(log)
            popen = subprocess.Popen(
                self.nodes.enter(node, line.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=line.cwd,
                env=line.environment,
                start_new_session=True,  # so that Ctrl-C reaches only MLCD
            )
        process = _Process(popen, log.open("rb"), partial(self.nodes.ran_out_of_memory, node))
        self.started.append(process)
        return process

    def memory_share(self) -> float | None:
        return largest(*map(self.nodes.memory_share, range(len(self.addresses))))

    def end(self) -> None:
        teardown.end_processes(teardown.mark_of(self.folder), teardown.GRACE_S, teardown.user_of(self.folder))


def _no_symlink(path: str, flags: int) -> int:
    """An opener that refuses symbolic links: the job may have replaced its log by one."""
    return os.open(path, flags | os.O_NOFOLLOW)


def _close(processes: list[_Process]) -> None:
    """Close the logs of processes that have ended, and reap them."""
    for process in processes:
        process.log.close()
        process.popen.wait()
