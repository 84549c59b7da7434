"""The local backend: real nodes on this machine, and real jobs on them."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import mlcd.clouds.local.teardown as teardown
import mlcd_tracker
from mlcd.clouds.environment import check_environment
from mlcd.clouds.launches import MOST_READ, Launches
from mlcd.clouds.live import LiveJob, Patience
from mlcd.clouds.local.isolation import IsolatedNodes, PlainNodes
from mlcd.clouds.local.node_types import NodeType, NodeTypes
from mlcd.clouds.local.watchman import Watchman
from mlcd.clouds.local.workplace import Workplace, workplace
from mlcd.clouds.platforms import leave_file
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.job import Job

HANGS_AFTER_S = 60.0
"""Without a report, once there was one."""
TEARDOWN_S = teardown.GRACE_S + 1.0
"""Kept at the end of a lifetime to be gone in time."""


@dataclass(frozen=True)
class Local:
    """Runs jobs on nodes of this machine. `home`: where launches and checkpoints are kept."""

    node_types: NodeTypes
    home: Path
    clock: Clock
    isolated: bool = True
    hangs_after_s: float = HANGS_AFTER_S

    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """What was ever launched here."""
        return Launches(self.home / "launches")

    def run(self, job: Job, launch: Launch) -> Events:
        """Bring the nodes up, run the job on them, tear them down."""
        started_s = self.clock.elapsed_s()
        check_environment(job)
        folder = self.launches.open(launch)
        with ExitStack() as stack:
            stack.enter_context(Watchman(folder, launch.lifetime_s))
            started: list[_Process] = []
            stack.callback(teardown.tear_down, folder, reap=partial(_close, started))
            node_type = self.node_types.named(launch.configuration.offer.instance_type)
            make = IsolatedNodes if self.isolated else PlainNodes
            place, environment = self._furnished(job, launch, folder, node_type)
            machines = make(teardown.mark_of(folder), node_type, launch.configuration.nodes)
            nodes = _Nodes(folder, place, machines, started)
            patience = Patience(self.node_types.startup_s, self.hangs_after_s, TEARDOWN_S)
            live = LiveJob(job, launch, nodes, self.clock, patience, started_s, environment)
            yield from live.events()
            if job.checkpoints and live.has_finished:  # a probe counts, and this one was the last
                place.bring_back()

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch; what it was up for is on disk."""
        folder = self.launches.find(label)
        return None if folder is None else teardown.tear_down(folder)

    def saved(self, label: str) -> float:
        """What a launch has saved whose end nobody saw."""
        return self.launches.saved(label)

    def leftovers(self) -> set[str]:
        """Launches of ours of which anything is left."""
        left = teardown.marks()
        return {folder.name for folder in self.launches.folders() if teardown.mark_of(folder) in left}

    def _furnished(
        self, job: Job, launch: Launch, folder: Path, node_type: NodeType
    ) -> tuple[Workplace, dict[str, str]]:
        """Where processes work, and what they get beside the framework's variables."""
        place = workplace(job, launch, self.home, folder)
        shutil.copytree(Path(mlcd_tracker.__file__).parent, folder / "tracker" / "mlcd_tracker", dirs_exist_ok=True)
        place, tracker = place.show("tracker", folder / "tracker")
        python_path = os.environ.get("PYTHONPATH")
        variables = {
            "MLCD_LAUNCH": teardown.mark_of(folder),
            "OMP_NUM_THREADS": str(max(1, round(node_type.cpus))),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": f"{tracker}{os.pathsep}{python_path}" if python_path else tracker,
            "PYTHONUNBUFFERED": "1",
        }
        if job.checkpoints:
            kept_in = self.home / "checkpoints" / launch.label.rpartition("-")[0]
            place, kept = place.show("checkpoints", kept_in, to_write=True)
            variables["MLCD_CHECKPOINT_DIR"] = kept
            variables["MLCD_LEAVE"] = leave_file(kept, launch.label)
        return place, variables


@dataclass
class _Process:
    """A process on a node; its output goes to a file, so that it outlives whoever reads it."""

    popen: subprocess.Popen[bytes]
    log: IO[bytes]
    decoder: io.IncrementalNewlineDecoder = field(
        default_factory=lambda: io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), True)
    )

    def status(self) -> int | None:
        return self.popen.poll()

    def read(self) -> str:
        """What is new; of more than whoever reads has room for, the end. A job can make its log as long as it likes."""
        size = os.fstat(self.log.fileno()).st_size
        if size - self.log.tell() > MOST_READ:
            self.log.seek(size - MOST_READ)
        return self.decoder.decode(self.log.read(MOST_READ))


@dataclass
class _Nodes:
    """Nodes that are up, and the processes on them."""

    folder: Path
    place: Workplace
    nodes: IsolatedNodes | PlainNodes
    started: list[_Process]

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.nodes.addresses

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> _Process:
        log = self.folder / f"{len(self.started)}.log"
        started = self.place.started(command, {**self.nodes.environment, **environment})
        with log.open("wb") as output:
            self.place.give(log)
            popen = subprocess.Popen(
                self.nodes.enter(node, started.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=started.inside,
                env=started.environment,
                start_new_session=True,  # Ctrl-C is for MLCD alone
            )
        process = _Process(popen, log.open("rb"))
        self.started.append(process)
        return process

    def end(self) -> None:
        teardown.end_processes(teardown.mark_of(self.folder), teardown.GRACE_S, teardown.user_of(self.folder))


def _close(started: list[_Process]) -> None:
    """Let go of processes that have ended."""
    for process in started:
        process.log.close()
        process.popen.wait()
