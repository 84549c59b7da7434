"""A load test on a real server, which is started for it or already running.

As on local nodes, the launch is on disk before anything runs, every process carries the launch's mark in its
environment, and a watchdog ends the processes if MLCD is killed or the launch's lifetime is over.
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
from mlcd.clouds.frameworks import diagnose
from mlcd.clouds.frameworks.failures import KILLED, last_lines
from mlcd.clouds.load.generate import Closed, Open, Target, generate
from mlcd.clouds.local.meters import this_machine
from mlcd.clouds.local.reclaim import OnThisMachine
from mlcd.clouds.local.teardown import Watchdog
from mlcd.clouds.local.workspace import AnyWorkspace
from mlcd.clouds.servers.settings import OUT_OF_MEMORY, UNSUPPORTED, peak_gb
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.serve.nouns import Arrivals, Knob, ServingTask

POLL_S = 0.05
KEEP_MARK = {"SPT_NOENV": "1"}
"""Tells setproctitle, which engines use, not to overwrite the environment, where teardown looks for the mark."""
KEPT_OUTPUT = 20_000
"""Bytes of a server's output that are read to diagnose why it ended."""
OPEN_LOOP_FACTOR = 1.15
"""An open loop sends requests at this factor of the required rate, which would rarely be reached at exactly that."""


@dataclass(frozen=True)
class Timing:
    """`startup_s`: timeout of a server's start. `every_s`: reporting interval. `timeout_s`: of a request."""

    startup_s: float = 60.0
    every_s: float = 0.25
    timeout_s: float = 10.0

    @property
    def teardown_s(self) -> float:
        """Time reserved for teardown at the end of a lifetime."""
        return teardown.GRACE_S + 1.0 + self.every_s


@dataclass(frozen=True)
class Server:
    """A server that was started for a trial; its output goes to a file."""

    popen: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        """The last part of its output."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - KEPT_OUTPUT))
            return file.read(KEPT_OUTPUT).decode(errors="replace")


DiagnoseCrash = Callable[[float, int, str], Ended]
"""Explains why a server ended unexpectedly, from the time, its exit status and its output."""


@dataclass
class Trial:
    """One load test. `started_s`: when it was ordered. `crashed`: explains an unexpected end of a server."""

    launch: Launch
    folder: Path
    clock: Clock
    timing: Timing
    started_s: float
    crashed: DiagnoseCrash
    servers: list[Server] = field(default_factory=list)

    def start(self, command: Sequence[str], environment: Mapping[str, str], workspace: AnyWorkspace) -> Server:
        """Start a server."""
        log = self.folder / f"{len(self.servers)}.log"
        mark = {"MLCD_LAUNCH": teardown.mark_of(self.folder), **KEEP_MARK}
        line = workspace.command_line(f"exec {shlex.join(command)}", {**environment, **mark})
        with log.open("wb") as output:
            workspace.grant(log)
            popen = subprocess.Popen(
                ["bash", "-c", line.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=line.cwd,
                env=line.environment,
                start_new_session=True,  # Ctrl-C is for MLCD alone
            )
        self.servers.append(Server(popen, log))
        return self.servers[-1]

    def wait_until_ready(self, server: Server, is_ready: Callable[[], bool]) -> Ended | None:
        """Wait for a server; None when it is ready, or how it failed."""
        timeout_s = min(self.timing.startup_s, self.stop_s)
        while self.now_s() <= timeout_s:
            if (status := server.popen.poll()) is not None:
                return self.crashed(self.now_s(), status, server.output())
            if is_ready():
                return None
            self.clock.wait(POLL_S)
        detail = f"the server was not ready within {timeout_s:.0f} s"
        return Ended(self.now_s(), Outcome.TIMED_OUT, detail, last_lines(server.output()))

    def load(self, make_target: Callable[[], Target], arrivals: Open | Closed, warm_up: int = 0) -> Events:
        """Load-test the server and yield the results, until it ends or the lifetime is over.

        `warm_up`: requests that are sent first and not counted. Samples count answers; for streams, their tokens.
        """
        processes = teardown.processes_of(teardown.mark_of(self.folder))
        timeout_s, start_s = min(self.timing.timeout_s, self.stop_s - self.now_s()), None
        generated = generate(make_target, arrivals, every_s=self.timing.every_s, timeout_s=timeout_s, warm_up=warm_up)
        with closing(generated) as reports:
            for report in reports:
                start_s = self.now_s() if start_s is None else start_s
                if self.now_s() >= self.stop_s:
                    return
                for server in self.servers:
                    if (status := server.popen.poll()) is not None:
                        yield self.crashed(self.now_s(), status, server.output())
                        return
                window = replace(report.window, peak_gb=peak_gb(processes))
                done = float(report.tokens or report.answered)
                yield Sample(start_s + report.elapsed_s, done, evidence=window)

    def reap(self) -> None:
        """Wait for the servers to exit after they were killed."""
        for server in self.servers:
            server.popen.wait()

    @property
    def stop_s(self) -> float:
        """When to stop so that teardown ends within the lifetime."""
        return inf if self.launch.lifetime_s is None else self.launch.lifetime_s - self.timing.teardown_s

    def now_s(self) -> float:
        """Seconds since it was ordered."""
        return self.clock.elapsed_s() - self.started_s


@dataclass(frozen=True)
class Trials(OnThisMachine):
    """A backend whose launches are load tests on this machine. `home`: the folder that stores the launches."""

    home: Path
    clock: Clock
    timing: Timing = field(default_factory=Timing)

    @contextmanager
    def begun(self, launch: Launch, crashed: DiagnoseCrash | None = None) -> Generator[Trial]:
        """Begin a trial. Everything that it starts is torn down at the end of the `with` block."""
        started_s = self.clock.elapsed_s()
        folder = self.launches.open(launch)
        with ExitStack() as stack:
            stack.enter_context(Watchdog(folder, launch.lifetime_s))
            trial = Trial(launch, folder, self.clock, self.timing, started_s, crashed or _ended)
            stack.callback(teardown.tear_down, folder, reap=trial.reap)
            meter = this_machine(partial(teardown.processes_of, teardown.mark_of(folder)))
            stack.enter_context(Recorder(folder, [meter]))
            yield trial


def arrivals_of(service: ServingTask, knobs: Mapping[str, Knob], ordinal: int) -> Open | Closed:
    """How a trial sends its requests. A closed loop keeps two batches in flight: one computes, one waits."""
    if service.arrivals is Arrivals.OPEN:
        if service.min_rate is None:
            raise UserError("open arrivals need a rate: state how many requests a second the service has to answer")
        return Open(OPEN_LOOP_FACTOR * service.min_rate, seed=ordinal)
    return Closed(int(knobs.get("concurrency", max(2, 2 * int(knobs.get("batch", 1))))))


def _ended(now_s: float, status: int, output: str) -> Ended:
    """Explain why a server ended unexpectedly."""
    log = last_lines(output)
    last = log.splitlines()[-1].strip() if log else f"the server ended with status {status}, without any output"
    if status == UNSUPPORTED:  # only this setting fails, others may work; without a log, the job is not blamed
        return Ended(now_s, Outcome.FAILED, last)
    if status == OUT_OF_MEMORY or diagnose(status, output).outcome is Outcome.OUT_OF_MEMORY:
        return Ended(now_s, Outcome.OUT_OF_MEMORY, last, log)
    if status in KILLED:
        detail = "the server was killed from outside; systems do that when they run out of memory"
        return Ended(now_s, Outcome.OUT_OF_MEMORY, detail, log)
    return Ended(now_s, Outcome.FAILED, last, log)
