"""Running a job on machines that are up, and telling what happens: the same for every live backend."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from mlcd.clouds.environment import secrets, wanted
from mlcd.clouds.machines import Machines, RunningProcess
from mlcd.clouds.platforms import Process, Reader, diagnose, elastic_environment, processes
from mlcd.clouds.platforms.failures import blame, last_lines
from mlcd.core.backend import Events, Launch, Purpose
from mlcd.core.clock import Clock
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.scale.nouns import ScalingTask

LOOK_EVERY_S = 0.1
KEPT_OUTPUT = 20_000
"""Characters of a process's output that are kept to tell why it failed."""
FIRST_PORT = 29_500
LEAVES_WITHIN_S = 20.0
"""A job that is asked to save and leave, and has not by then, never will."""
LEAVING_SHARE = 0.2
"""Of a machine's time, kept for leaving where that is short."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a first report of progress and for the next one, and what is kept to tear down in time."""

    first_s: float
    next_s: float
    teardown_s: float = 0.0


@dataclass
class _Member:
    """A process of the job, and the end of what it has written."""

    told: Process
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
    patience: Patience
    started_s: float
    environment: dict[str, str] = field(default_factory=dict)
    first_port: int | Sequence[int] = FIRST_PORT
    asked_s: float | None = None
    has_finished: bool = False
    """Whether the job has ended well, with all of its work done."""

    def events(self) -> Events:
        """Start the job's processes and tell what happens, until it ends or its machines' time is over."""
        members = self._start()
        reader = Reader(self.job)
        last_report_s: float | None = None
        last = Sample(0.0, 0.0)
        while True:
            statuses = [member.running.status() for member in members]  # before reading: then nothing is missed
            reports = reader.reports
            samples = self._read(members, reader)
            if reader.reports > reports:  # a sign of life, even where it says nothing new
                last_report_s = self._now_s()
            for sample in samples:
                last = sample
                if (yield sample) and self.asked_s is None:
                    self._ask_to_leave()
            if (end := self._end(members, statuses, last_report_s)) is not None:
                self.has_finished = end.outcome is Outcome.OK and self._is_done(last)
                if end.outcome is not Outcome.OK or not self._left_for_want_of_time(last):
                    yield end
                return
            if self.asked_s is None and self._now_s() >= self._leaves_s:
                self._ask_to_leave()
            stays = self.asked_s is not None and self._now_s() > self.asked_s + LEAVES_WITHIN_S
            if stays or self._now_s() >= self._lasts_s:
                self.machines.end()
                yield from self._read(members, reader)  # it may have saved in the last moment
                return
            self.clock.wait(LOOK_EVERY_S)

    def _start(self) -> list[_Member]:
        told = processes(
            self.job.communication,
            self.machines.addresses,
            self.first_port,
            self.launch.configuration.offer.workers,
        )
        own = {
            "MLCD_LAUNCH": self.launch.label,
            "MLCD_SAMPLES": f"{self.launch.samples:.12g}",
            **elastic_environment(self.job, self.launch.configuration),
            **wanted(self.job),
            **secrets(self.job),
            **self.environment,
        }
        return [
            _Member(process, self.machines.start(process.node, command_of(self.job), {**process.environment, **own}))
            for process in told
        ]

    def _ask_to_leave(self) -> None:
        """The tracker of the first process looks for this file; the folder is one that every node has."""
        self.asked_s = self._now_s()
        if (file := self.environment.get("MLCD_LEAVE")) is not None:
            self.machines.start(0, f"touch {shlex.quote(file)}", {})

    def _read(self, members: list[_Member], reader: Reader) -> list[Sample]:
        samples: list[Sample] = []
        for member in members:
            new = member.read()
            if member.told.reports:
                samples += reader.feed(new, self._now_s())
        # On a busy machine the last report may be read after the machines' time; what it says is saved, is saved.
        most_s = inf if self.launch.lifetime_s is None else self.launch.lifetime_s
        return [replace(sample, elapsed_s=min(sample.elapsed_s, most_s)) for sample in samples]

    @property
    def _lasts_s(self) -> float:
        """When to stop, so that the machines are gone when their time is over."""
        return inf if self.launch.lifetime_s is None else self.launch.lifetime_s - self.patience.teardown_s

    @property
    def _leaves_s(self) -> float:
        """When to ask the job to save and leave, so that what it has done until its time is over is not lost."""
        if not isinstance(self.job.ask, ScalingTask) or self._lasts_s == inf:
            return inf
        return self._lasts_s - min(LEAVES_WITHIN_S / 2, LEAVING_SHARE * self._lasts_s)

    def _left_for_want_of_time(self, last: Sample) -> bool:
        """Whether a job that ended well did so because it was asked to, with work left."""
        return self.asked_s is not None and self.asked_s >= self._leaves_s and not self._is_done(last)

    def _is_done(self, last: Sample) -> bool:
        """Whether a job that has reported this has no work left."""
        target = self.job.target
        reached = target is not None and last.metric is not None and target.reached(last.metric)
        return reached or last.samples >= self.launch.samples

    def _end(self, members: list[_Member], statuses: list[int | None], last_report_s: float | None) -> Ended | None:
        """How the job ended, if it did."""
        now_s = self._now_s()
        failed = [(status, member) for status, member in zip(statuses, members, strict=True) if status]
        if failed:
            # Those that only lost their peer fail with errors of their own.
            status, member = min(failed, key=lambda pair: blame(pair[0], pair[1].output))
            told = diagnose(status, self._all_output(members, member))
            return Ended(now_s, told.outcome, f"node {member.told.node}: {told.advice}", last_lines(member.output))
        if all(status == 0 for member, status in zip(members, statuses, strict=True) if member.told.ends):
            nothing_left = self.launch.purpose is Purpose.RUN and self.launch.saved_samples > 0
            if last_report_s is None and not nothing_left:
                advice = "it ended without a report of progress: call mlcd_tracker.step, or give `report:` a pattern"
                return Ended(now_s, Outcome.FAILED, advice, last_lines(members[0].output))
            return Ended(now_s, Outcome.OK)
        waited_s, patient_s = now_s - (last_report_s or 0.0), self.patience.next_s
        if last_report_s is None:
            patient_s = self.patience.first_s
        if waited_s > patient_s:
            what = "no report of progress" if last_report_s is None else "no further report of progress"
            advice = f"{what} in {waited_s:.0f} s: the job hangs, or never calls mlcd_tracker.step"
            return Ended(now_s, Outcome.TIMED_OUT, advice, last_lines(members[0].output))
        return None

    def _all_output(self, members: list[_Member], first: _Member) -> str:
        """The failed process's own output; if it says nothing, that of the others: one node's error ends them all."""
        return first.output if "Error" in first.output else "\n".join(member.output for member in members)

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s


def command_of(job: Job) -> str:
    """What a node is to run: the job's set-up, then the job."""
    setup, run = str(job.task.get("setup") or ""), str(job.task.get("run") or "")
    return f"{setup}\n{run}" if setup.strip() else run
