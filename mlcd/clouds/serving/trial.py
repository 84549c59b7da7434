"""A load test on a real server: started for it or not, loaded, watched, and gone afterwards.

As on local nodes, an order is on disk before anything runs, every process carries the launch's mark in its environment,
and a watchman ends them should MLCD be killed or the launch's time be over.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.launches import Launches
from mlcd.clouds.load import Closed, Open, Target, generate
from mlcd.clouds.local.watchman import Watchman
from mlcd.clouds.local.workplace import Workplace
from mlcd.clouds.platforms import diagnose
from mlcd.clouds.platforms.failures import KILLED, last_lines
from mlcd.clouds.servers import OUT_OF_MEMORY, UNSUPPORTED, peak_gb
from mlcd.core.backend import Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.serve.knobs import Knob
from mlcd.planners.serve.nouns import Arrivals, ServingTask

LOOK_EVERY_S = 0.05
KEPT_OUTPUT = 20_000
"""Bytes of a server's output that are read to tell why it ended."""
OFFERED = 1.15
"""Times the rate that is asked for, in an open loop: a server that is sent just that much is never seen to reach it."""


@dataclass(frozen=True)
class Pace:
    """`startup_s`: how long a server may take to be ready. `every_s`: between two reports. `timeout_s`: after which a
    request has failed.
    """

    startup_s: float = 60.0
    every_s: float = 0.25
    timeout_s: float = 10.0

    @property
    def leaving_s(self) -> float:
        """Kept at the end of a lifetime, to be gone in time."""
        return teardown.GRACE_S + 1.0 + self.every_s


@dataclass(frozen=True)
class Server:
    """A server that was started for a trial; its output goes to a file."""

    popen: subprocess.Popen[bytes]
    log: Path

    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self.popen.poll()

    def output(self) -> str:
        """The end of what it has written."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - KEPT_OUTPUT))
            return file.read(KEPT_OUTPUT).decode(errors="replace")


@dataclass
class Trial:
    """One load test, from when it was ordered."""

    launch: Launch
    folder: Path
    clock: Clock
    pace: Pace
    started_s: float
    servers: list[Server] = field(default_factory=list)

    def start(self, command: Sequence[str], environment: Mapping[str, str], place: Workplace) -> Server:
        """Start a server."""
        log = self.folder / f"{len(self.servers)}.log"
        mark = {"MLCD_LAUNCH": teardown.mark_of(self.folder)}
        started = place.started(f"exec {shlex.join(command)}", {**environment, **mark})
        with log.open("wb") as output:
            place.give(log)
            popen = subprocess.Popen(
                ["bash", "-c", started.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=started.inside,
                env=started.environment,
                start_new_session=True,  # Ctrl-C is for MLCD alone
            )
        self.servers.append(Server(popen, log))
        return self.servers[-1]

    def until_ready(self, server: Server, is_ready: Callable[[], bool]) -> Ended | None:
        """Wait for a server; how it ended, if it is not ready in time."""
        patient_s = min(self.pace.startup_s, self._lasts_s)
        while self._now_s() <= patient_s:
            if (status := server.status()) is not None:
                return _ended(self._now_s(), status, server.output())
            if is_ready():
                return None
            self.clock.wait(LOOK_EVERY_S)
        detail = f"the server was not ready within {patient_s:.0f} s"
        return Ended(self._now_s(), Outcome.TIMED_OUT, detail, last_lines(server.output()))

    def loaded(self, make_target: Callable[[], Target], arrivals: Open | Closed) -> Events:
        """Load the server and tell what comes of it, until it ends or its time is over."""
        processes = teardown.processes_of(teardown.mark_of(self.folder))
        ready_s = self._now_s()
        load = generate(make_target, arrivals, every_s=self.pace.every_s, timeout_s=self.pace.timeout_s)
        with closing(load) as reports:
            for report in reports:
                if self._now_s() >= self._lasts_s:
                    return
                for server in self.servers:
                    if (status := server.status()) is not None:
                        yield _ended(self._now_s(), status, server.output())
                        return
                window = replace(report.window, peak_gb=peak_gb(processes))
                yield Sample(ready_s + report.elapsed_s, float(report.answered), evidence=window)

    @property
    def _lasts_s(self) -> float:
        """When to stop, so that the server is gone when its time is over."""
        return inf if self.launch.lifetime_s is None else self.launch.lifetime_s - self.pace.leaving_s

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s


@dataclass(frozen=True)
class Trials:
    """Load tests on disk, under `home`, with what is left of them."""

    home: Path
    clock: Clock
    pace: Pace

    @contextmanager
    def begun(self, launch: Launch) -> Generator[Trial]:
        """A trial; whatever it started is gone when it is left."""
        started_s = self.clock.elapsed_s()
        folder = self._launches.open(launch)
        with ExitStack() as stack:
            stack.enter_context(Watchman(folder, launch.lifetime_s))
            trial = Trial(launch, folder, self.clock, self.pace, started_s)
            stack.callback(teardown.tear_down, folder, reap=partial(_reap, trial.servers))
            yield trial

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a trial; what it was up for is on disk."""
        folder = self._launches.find(label)
        return None if folder is None else teardown.tear_down(folder)

    def leftovers(self) -> set[str]:
        """Trials of which anything is left."""
        left = teardown.marks()
        return {folder.name for folder in self._launches.folders() if teardown.mark_of(folder) in left}

    @property
    def _launches(self) -> Launches:
        return Launches(self.home / "launches")


def service_of(job: Job) -> ServingTask:
    """What is to be served."""
    if not isinstance(job.ask, ServingTask):
        raise UserError(f"{job.name}: is no model to be served")
    return job.ask


def arrivals_of(service: ServingTask, knobs: Mapping[str, Knob], ordinal: int) -> Open | Closed:
    """How a trial sends its requests: in a closed loop, two batches are on their way, one computed and one waiting."""
    if service.arrivals is Arrivals.OPEN:
        if service.min_rate is None:
            raise UserError("open arrivals need a rate: say how many requests a second the service has to answer")
        return Open(OFFERED * service.min_rate, seed=ordinal)
    return Closed(int(knobs.get("concurrency", max(2, 2 * int(knobs.get("batch", 1))))))


def _ended(now_s: float, status: int, output: str) -> Ended:
    """How a server ended that should not have."""
    log = last_lines(output)
    last = log.splitlines()[-1].strip() if log else f"the server ended with status {status}, and said nothing"
    if status == UNSUPPORTED:  # a matter of this setting: others may well do, so there is no log that blames the job
        return Ended(now_s, Outcome.FAILED, last)
    if status == OUT_OF_MEMORY or diagnose(status, output).outcome is Outcome.OUT_OF_MEMORY:
        return Ended(now_s, Outcome.OUT_OF_MEMORY, last, log)
    if status in KILLED:
        detail = "the server was killed from outside, as a system does that runs out of memory"
        return Ended(now_s, Outcome.OUT_OF_MEMORY, detail, log)
    return Ended(now_s, Outcome.FAILED, last, log)


def _reap(servers: Sequence[Server]) -> None:
    for server in servers:
        server.popen.wait()
