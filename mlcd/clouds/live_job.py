"""Runs a job on machines that are up and yields its events. Every live backend but SkyPilot shares this code.

A backend provides `Machines`: addresses, and a way to start processes on them.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol, runtime_checkable

from mlcd.clouds.environment import job_variables, secrets
from mlcd.clouds.frameworks import Process, ProgressReader, diagnose, processes, scaling_environment
from mlcd.clouds.frameworks.failures import blame, last_lines
from mlcd.core.backend import Backend, Events, Launch, Purpose
from mlcd.core.clock import Clock
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample, largest
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.scale.nouns import ScalingTask

POLL_S = 0.1
KEPT_OUTPUT = 20_000
"""Characters of a process's output that are kept to diagnose a failure."""
FIRST_PORT = 29_500
STOP_TIMEOUT_S = 20.0
"""How long a job has to save and exit after it was asked to."""
STOP_SHARE = 0.2
"""Upper bound of the share of a short lifetime that is reserved for saving and exiting."""
LIVE_NOISE = 0.02
"""Minimum relative error of a real probe's rate: a probe of minutes does not show how the rate drifts over hours."""
LIVE_SETTLES_S = 60.0
"""Time in which slow drifts of a real rate average out: neighbours, caches, clock speeds. On a quiet machine the rates
of two adjacent 10 s windows differed by 8 %."""
STALLED_S = 10.0
"""After this time without a report, and again after each such time, a stalled sample is yielded."""
NEVER_REPORTED = "it ended without a report of progress: call mlcd_tracker.step, or give `report:` a pattern"


class RunningProcess(Protocol):
    """A process of the job on one of the machines."""

    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""

    def read(self) -> str:
        """Its output since the last call."""


class Machines(Protocol):
    """Machines that are up until the backend tears them down."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the nodes, in order."""

    def start(self, node: int, command: str, environment: Mapping[str, str]) -> RunningProcess:
        """Start a shell command on a node, with these variables in addition to the machine's own."""

    def end(self) -> None:
        """End all processes: SIGTERM first, then SIGKILL. Their output can still be read."""


@runtime_checkable
class ReportsMemory(Protocol):
    """Machines whose memory use can be measured."""

    def memory_share(self) -> float | None:
        """The largest share of its memory that any machine uses now; None if it is not measured."""


@dataclass(frozen=True)
class Timeouts:
    """Timeouts of the first progress report and of each further one, and the time reserved for teardown."""

    first_report_s: float
    next_report_s: float
    teardown_s: float = 0.0

    def stop_s(self, launch: Launch) -> float:
        """When to stop a launch, so that teardown ends within its lifetime."""
        return inf if launch.lifetime_s is None else launch.lifetime_s - self.teardown_s

    def overdue(self, now_s: float, last_report_s: float | None) -> str | None:
        """What to tell the user if the next report is overdue."""
        waited_s = now_s - (last_report_s or 0.0)
        if waited_s <= (self.first_report_s if last_report_s is None else self.next_report_s):
            return None
        what = "no report of progress" if last_report_s is None else "no further report of progress"
        return f"{what} in {waited_s:.0f} s: the job hangs, or never calls mlcd_tracker.step"


@dataclass
class _Member:
    """A process of the job, with the last part of its output."""

    process: Process
    running: RunningProcess
    output: str = ""

    def read(self) -> str:
        new = self.running.read()
        self.output = (self.output + new)[-KEPT_OUTPUT:]
        return new


@dataclass
class LiveJob:
    """A job on machines, from its start to its end."""

    job: Job
    launch: Launch
    machines: Machines
    clock: Clock
    timeouts: Timeouts
    started_s: float
    environment: dict[str, str] = field(default_factory=dict)
    first_port: int | Sequence[int] = FIRST_PORT
    stop_requested_s: float | None = None
    has_finished: bool = False
    """Whether the job ended successfully with all of its work done."""
    memory: float | None = None
    """The largest share of its memory that a machine has used so far."""

    def events(self) -> Events:
        """Start the job's processes and yield their events until the job ends or the lifetime is over."""
        members = self._start()
        reader = ProgressReader(self.job)
        last_report_s: float | None = None
        last: Sample | None = None
        while True:
            statuses = [member.running.status() for member in members]  # before reading: no output is missed
            if isinstance(self.machines, ReportsMemory):
                self.memory = largest(self.memory, self.machines.memory_share())
            reports = reader.reports
            samples = self._read(members, reader) or stalled(self.launch, last, self._now_s())
            if reader.reports > reports:  # a report may contain no new sample, but shows progress
                last_report_s = self._now_s()
            for sample in samples:
                last = sample
                if (yield sample) and self.stop_requested_s is None:
                    self._request_stop()
            if (end := self._end(members, statuses, last_report_s)) is not None:
                self.has_finished = end.outcome is Outcome.OK and self._is_done(last)
                time_was_over = self.stop_requested_s is not None and self.stop_requested_s >= self._request_stop_s
                if end.outcome is not Outcome.OK or self.has_finished or not time_was_over:
                    yield end  # else the job exited because its lifetime was over, with work left to do
                return
            if self.stop_requested_s is None and self._now_s() >= self._request_stop_s:
                self._request_stop()
            overdue = self.stop_requested_s is not None and self._now_s() > self.stop_requested_s + STOP_TIMEOUT_S
            if overdue or self._now_s() >= self.timeouts.stop_s(self.launch):
                self.machines.end()
                yield from self._read(members, reader)  # it may have saved just before the end
                return
            self.clock.wait(POLL_S)

    def _start(self) -> list[_Member]:
        variables = {
            "MLCD_LAUNCH": self.launch.label,
            "MLCD_SAMPLES": f"{self.launch.samples:.12g}",
            **scaling_environment(self.job, self.launch.configuration),
            **job_variables(self.job),
            **secrets(self.job),
            **self.environment,
        }
        setup, run = str(self.job.task.get("setup") or ""), str(self.job.task.get("run") or "")
        command = f"{setup}\n{run}" if setup.strip() else run
        devices, addresses = self.launch.configuration.offer.workers, self.machines.addresses
        return [
            _Member(process, self.machines.start(process.node, command, {**process.environment, **variables}))
            for process in processes(self.job.communication, addresses, self.first_port, devices)
        ]

    def _request_stop(self) -> None:
        """Create the file that the first process's tracker polls, in a folder that all nodes share."""
        self.stop_requested_s = self._now_s()
        if (file := self.environment.get("MLCD_LEAVE")) is not None:
            self.machines.start(0, f"touch {shlex.quote(file)}", {})

    def _read(self, members: list[_Member], reader: ProgressReader) -> list[Sample]:
        samples: list[Sample] = []
        for member in members:
            new = member.read()
            if member.process.reports:
                samples += reader.feed(new, self._now_s())
        # On a busy machine the last report may be read after the lifetime is over. Saved work in it still counts.
        most_s = inf if self.launch.lifetime_s is None else self.launch.lifetime_s
        return [
            replace(each, elapsed_s=min(each.elapsed_s, most_s), memory=largest(each.memory, self.memory))
            for each in samples
        ]

    @property
    def _request_stop_s(self) -> float:
        """When to ask the job to save and exit, so that its work is not lost when the lifetime is over."""
        stop_s = self.timeouts.stop_s(self.launch)
        if not isinstance(self.job.ask, ScalingTask) or stop_s == inf:
            return inf
        return stop_s - min(STOP_TIMEOUT_S / 2, STOP_SHARE * stop_s)

    def _is_done(self, last: Sample | None) -> bool:
        """Whether all work was done at the job's last sample."""
        if last is None:
            return self.launch.samples <= 0
        target = self.job.target
        reached = target is not None and last.metric is not None and target.reached(last.metric)
        return reached or last.samples >= self.launch.samples

    def _end(self, members: list[_Member], statuses: list[int | None], last_report_s: float | None) -> Ended | None:
        """How the job ended; None while it runs."""
        now_s = self._now_s()
        failed = [(status, member) for status, member in zip(statuses, members, strict=True) if status]
        if failed:
            # Processes that only lost a peer fail with errors of their own; `blame` ranks the real cause first.
            status, member = min(failed, key=lambda pair: blame(pair[0], pair[1].output))
            # If its output shows no error, look at the output of all: an error on one node ends all nodes.
            shows_error = "Error" in member.output
            diagnosis = diagnose(status, member.output if shows_error else "\n".join(each.output for each in members))
            detail = f"node {member.process.node}: {diagnosis.advice}"
            return Ended(now_s, diagnosis.outcome, detail, last_lines(member.output))
        if all(status == 0 for member, status in zip(members, statuses, strict=True) if member.process.ends):
            nothing_left = self.launch.purpose is Purpose.RUN and self.launch.saved_samples > 0
            if last_report_s is None and not nothing_left:
                return Ended(now_s, Outcome.FAILED, NEVER_REPORTED, last_lines(members[0].output))
            return Ended(now_s, Outcome.OK)
        if (advice := self.timeouts.overdue(now_s, last_report_s)) is not None:
            return Ended(now_s, Outcome.TIMED_OUT, advice, last_lines(members[0].output))
        return None

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s


def stalled(launch: Launch, last: Sample | None, now_s: float) -> list[Sample]:
    """The last sample again, marked as stalled, if a run has not reported for `STALLED_S`.

    A run is only checked when a sample arrives, so a silent run needs these.
    """
    if last is None or launch.purpose is not Purpose.RUN or now_s < last.elapsed_s + STALLED_S:
        return []
    return [replace(last, elapsed_s=now_s, stalled=True)]


def live_profiler(backend: Backend) -> TrainingProfiler:
    """A profiler that ends a probe once its rate is known about as well as a probe of minutes can know it."""
    # `tight` must be wider than the noise floor, or no probe would ever end early.
    return TrainingProfiler(backend, noise_floor=LIVE_NOISE, settles_s=LIVE_SETTLES_S, tight=4 * LIVE_NOISE)
