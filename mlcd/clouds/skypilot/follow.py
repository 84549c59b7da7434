"""Follows a launch: turns its output into events, which are progress, the job's end, timeouts and lost machines."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from pathlib import Path
from typing import IO

from mlcd.clouds.frameworks import OutputReader, diagnose
from mlcd.clouds.frameworks.failures import last_lines
from mlcd.clouds.live_job import KEPT_OUTPUT, NEVER_REPORTED, Timeouts, stalled
from mlcd.clouds.skypilot.launch_thread import LaunchThread
from mlcd.clouds.skypilot.leave_request import LeaveRequest
from mlcd.clouds.skypilot.liveness import (
    SECOND_STATUS_AFTER_S,
    SILENT_S,
    BackgroundAnswer,
    LossDetector,
    NodeClock,
    NodeLiveness,
    StaleStatus,
)
from mlcd.clouds.skypilot.output_lines import Line, Lines
from mlcd.clouds.skypilot.task import ELSEWHERE, has_cached_mount
from mlcd.core.backend import Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, NothingOrdered
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample

POLL_S = 1.0
TIME_OVER = 124
"""Exit status of `timeout` when the launch's lifetime is over."""
STATUS_TRIES = 8
"""How often the status is requested after a failed job, while SkyPilot answers with a stale one."""
SETUP_FAILED = "(status: FAILED_SETUP)"
"""What SkyPilot writes when the user's `setup` fails."""


@dataclass
class Follower:
    """Follows a launch from its order to its end.

    `is_up` asks the cloud and waits for the answer; `request_status` does not wait. `log` gets the output.
    `make_reader` makes the parser of the output, with a stored offset between the job's clock and the launch's.
    `first_report`: the file with that offset, for a process that rejoins the launch.
    Samples are held back until all nodes are known to have been up at their time: those after a node was lost are
    dropped.
    """

    job: Job
    launch: Launch
    launch_thread: LaunchThread
    is_up: Callable[[], bool | None]
    request_status: Callable[[], BackgroundAnswer]
    clock: Clock
    timeouts: Timeouts
    started_s: float
    log: IO[str]
    first_report: Path
    leave_request: LeaveRequest
    make_reader: Callable[[float | None], OutputReader]
    last_report_s: float | None = None
    output: str = ""
    exit_status: int | None = None
    held: list[Sample] = field(default_factory=list)
    last: Sample | None = None
    lines: Lines = field(default_factory=Lines)

    def __post_init__(self) -> None:
        node_clock_s, tracker_s = self._stored_offsets()
        self.reader = self.make_reader(tracker_s)
        self.node_clock = NodeClock(self.clock.now().timestamp() - self._now_s(), node_clock_s)
        self.liveness = NodeLiveness(self.launch.configuration.nodes)
        self.loss_detector = LossDetector(self.request_status, self.liveness, self._now_s())

    def events(self) -> Events:
        """Yield events until the job ends or the lifetime is over. `BackendError` if the launch fails."""
        try:
            while True:
                end = self.launch_thread.end()  # checked before reading, so that no output is missed
                reports = self.reader.reports
                self.held += self._read()
                if self.reader.reports > reports:  # a report may contain no new sample, but shows progress
                    self.last_report_s = self._now_s()
                    self._store_offsets()
                for sample in self._released(self.liveness.complete_until_s) or self._stalled():
                    if (yield sample):
                        self.leave_request.send_once(self._now_s())
                ended = self._ended(end)
                if ended is not None and self.exit_status != TIME_OVER:
                    if ended.outcome is not Outcome.PREEMPTED:
                        yield from self._released(inf)
                    if ended.outcome is not Outcome.OK or not self.leave_request.is_unfinished(self.last):
                        yield ended
                if ended is not None or self._is_over(self._now_s()):
                    return
                if self._now_s() >= self.leave_request.due_s and self.last is not None:
                    self.leave_request.send_once(self._now_s())
                self.clock.wait(POLL_S)
        finally:
            self.log.write(self.lines.end())

    def _is_over(self, now_s: float) -> bool:
        return now_s >= self.timeouts.stop_s(self.launch) or self.leave_request.is_overdue(now_s)

    def _stored_offsets(self) -> tuple[float | None, float | None]:
        """The offsets of the nodes' clock and of the tracker's; None if not stored yet, or damaged."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            stored = json.loads(self.first_report.read_text(encoding="utf-8"))
            return (None, stored) if isinstance(stored, float) else (stored["nodes"], stored["tracker"])
        return None, None

    def _store_offsets(self) -> None:
        offsets = (self.node_clock.offset_s, self.reader.offset_s)
        if offsets != (None, None) and offsets != self._stored_offsets():
            self.first_report.write_text(json.dumps({"nodes": offsets[0], "tracker": offsets[1]}), encoding="utf-8")

    def _read(self) -> list[Sample]:
        """The samples in new output. Lines that were written at the same time are read together."""
        lines = self.lines.feed(self.launch_thread.read())
        if not lines:
            return []
        self.log.write("".join(line.shown for line in lines))
        self.log.flush()
        samples: list[Sample] = []
        reporting = [line for line in lines if self._record(line)]
        for at, together in groupby(reporting, key=lambda line: line.at):
            text = "".join(f"{line.text}\n" for line in together)
            samples += self.reader.feed(text, self._elapsed_s(at))
        return [sample for sample in samples if sample.elapsed_s <= self.timeouts.stop_s(self.launch)]

    def _record(self, line: Line) -> bool:
        """Record what a line says about the nodes; return whether it may contain a progress report."""
        if line.alive is not None:
            self.liveness.record_heartbeat(line.alive, self._elapsed_s(line.at))
            return False
        self.output = f"{self.output}{line.text}\n"[-KEPT_OUTPUT:] if line.text else self.output
        if line.exit is None:
            if line.at is not None:
                self.liveness.record_heartbeat(0, self._elapsed_s(line.at))
            return not line.text.startswith(ELSEWHERE) and self.launch_thread.submitted()
        status, node = line.exit
        self.liveness.record_heartbeat(node, self._elapsed_s(line.at))
        if status == 0:
            self.liveness.record_end(node)
        # The first node's end is the job's end; of the other nodes only a failure counts.
        if self.exit_status is None and (node == 0 or status != 0):
            self.exit_status = status
        return False

    def _elapsed_s(self, at: float | None) -> float:
        """When a line was written; now, if it has no timestamp."""
        return self._now_s() if at is None else self.node_clock.elapsed_s(at, self._now_s())

    def _released(self, until_s: float) -> list[Sample]:
        """The held samples up to this time; they are held back no longer."""
        released = [sample for sample in self.held if sample.elapsed_s <= until_s]
        self.held = self.held[len(released) :]
        self.last = released[-1] if released else self.last
        return released

    def _stalled(self) -> list[Sample]:
        """The last sample again, marked as stalled, if the job has not reported for a while."""
        repeated = [] if self.held else stalled(self.launch, self.last, self._now_s())
        self.last = repeated[-1] if repeated else self.last
        return repeated

    def _ended(self, end: int | BackendError | None) -> Ended | None:
        """How the launch ended; None while it runs."""
        if self.reader.ended is not None:
            return replace(self.reader.ended, elapsed_s=self._now_s())
        if self.exit_status is not None and (end is not None or not has_cached_mount(self.job)):
            return self._job_ended(self.exit_status)
        if end is None:
            return self._check_timeouts()
        if end == 0:
            return self._job_ended(0)
        if isinstance(end, NothingOrdered):
            raise end
        if self.launch_thread.submitted() and self._is_lost():
            return self._lost()
        if isinstance(end, BackendError):
            raise end
        return self._job_ended(1)

    def _job_ended(self, status: int) -> Ended:
        if status == 0 and self.last_report_s is None:
            return self._ended_with_log(Outcome.FAILED, NEVER_REPORTED)
        if status == 0:
            return self._lost() if self._was_lost_before_the_end() else Ended(self._now_s(), Outcome.OK)
        # A job that has lost a node fails with its own error: check the machines first.
        if status != TIME_OVER and self._is_lost():
            return self._lost()
        diagnosis = diagnose(status, self.output)
        return self._ended_with_log(diagnosis.outcome, diagnosis.advice)

    def _check_timeouts(self) -> Ended | None:
        """The end of the launch if the machines are lost or late, or if the next report is late."""
        now_s = self._now_s()
        if not self.launch_thread.submitted():
            if now_s > self.timeouts.first_report_s:
                return self._ended_with_log(Outcome.LAUNCH_FAILED, f"the machines were not up in {now_s:.0f} s")
            return None
        if self.loss_detector.is_lost(now_s):
            return self._lost()
        advice = self.timeouts.overdue(now_s, self.last_report_s)
        return None if advice is None else self._ended_with_log(Outcome.TIMED_OUT, advice)

    def _was_lost_before_the_end(self) -> bool:
        """Whether a node was lost before the first node's job ended successfully.

        The cloud is asked, but only soon after the end: an idle cluster tears itself down a minute later. Without an
        answer, a node that was silent at the end counts as lost.
        """
        if self.liveness.have_others_ended:
            return False
        is_soon = self._now_s() - self.liveness.latest_s < SILENT_S
        up = self._status_now() if is_soon else None
        if up is False:  # asked twice, as in `LossDetector`
            self.clock.wait(SECOND_STATUS_AFTER_S)
            up = self._status_now()
        return not up if up is not None else self.liveness.has_silent_node

    def _status_now(self) -> bool | None:
        """Whether the cluster is up; None if it no longer exists or the cloud cannot be reached."""
        with suppress(BackendError):
            return self.is_up()
        return None

    def _is_lost(self) -> bool:
        """Whether some machines of a failed job are gone.

        While the cloud cannot be reached, they do not count as lost. A cluster that is gone a minute after the job may
        have torn itself down.
        """
        idle_from_s = self._now_s() + SILENT_S
        for _ in range(STATUS_TRIES):
            try:
                up = self.is_up()
            except StaleStatus:
                self.clock.wait(SECOND_STATUS_AFTER_S)
            except BackendError:
                return False
            else:
                may_be_idle = up is None and self._now_s() >= idle_from_s
                return self._was_probably_lost() if may_be_idle else up is not True
        return False

    def _was_probably_lost(self) -> bool:
        """Whether machines were probably lost, judged without the cloud: the cluster may have torn itself down."""
        if SETUP_FAILED in self.output:  # the machines were up to write this
            return False
        return self.launch.rented.offer.spot or self.liveness.has_silent_node

    def _lost(self) -> Ended:
        what = "taken back by the cloud" if self.launch.rented.offer.spot else "no longer up"
        which = "its machines" if self.liveness.nodes == 1 else "some or all of its machines"
        return self._ended_with_log(Outcome.PREEMPTED, f"{which} were {what}")

    def _ended_with_log(self, outcome: Outcome, detail: str) -> Ended:
        return Ended(self._now_s(), outcome, detail, last_lines(self.output))

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s
