"""A launch in progress: followed in a thread, since SkyPilot's calls block, and its output turned into events.

Events are progress, the end of the job, timeouts and lost machines.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mlcd.clouds.live import KEPT_OUTPUT, NEVER_REPORTED, Timeouts
from mlcd.clouds.platforms import Reader, diagnose
from mlcd.clouds.platforms.failures import last_lines
from mlcd.clouds.platforms.reports import LONGEST_LINE
from mlcd.clouds.skypilot.task import ELSEWHERE
from mlcd.core.backend import Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, NothingOrdered
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Outcome, Sample

POLL_S = 1.0
SILENCE_S = 60.0
"""After so long without output, check that the cluster is up: a connection to lost machines may stay open silently."""
TIME_OVER = 124
"""Exit status of `timeout` when the launch's lifetime is over."""
CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Terminal colours in SkyPilot's output."""
PREFIX = re.compile(r"^\([^()]*\bpid=\d+[^()]*\) ?")
"""SkyPilot's prefix of every line of a job: (head, rank=0, pid=2317)."""
STOP_WITHIN_S = 600.0
"""Timeout of sending a task with its files when the launch is stopped meanwhile."""
_EXIT = re.compile(r"^@mlcd exit=(\d+) node=(\d+)\s*$")


class Stream:
    """Runs `work` in a thread; its output and its end can be read at any time.

    `work` returns the exit code of SkyPilot's job. A daemon thread, so that Ctrl-C never waits for it.
    """

    def __init__(self, work: Callable[["Stream"], int]) -> None:
        self._written: deque[str] = deque()  # safe to append to in one thread while another one pops
        self._submitted, self._ordered, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._end: int | BackendError | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Called by `work`: more output."""
        self._written.append(text)

    def ordered(self) -> None:
        """Called by `work`: the order is out, and its machines can be found by name."""
        self._ordered.set()

    def started(self) -> None:
        """Called by `work`: the machines are up and have the job."""
        self._ordered.set()
        self._submitted.set()

    @property
    def stopped(self) -> bool:
        """Read by `work`: whether to stop."""
        return self._stopped.is_set()

    def submitted(self) -> bool:
        """Whether the machines are up and have the job."""
        return self._submitted.is_set()

    def read(self) -> str:
        """Output since the last call."""
        return "".join(self._written.popleft() for _ in range(len(self._written)))

    def end(self) -> int | BackendError | None:
        """The exit code of the job, or why there is none; None while it runs."""
        return self._end

    def stop(self) -> None:
        """Stop. Waits for an order that is being sent, so that `Sdk.down` finds everything that may still start."""
        self._stopped.set()
        self._ordered.wait(STOP_WITHIN_S)

    def _run(self, work: Callable[["Stream"], int]) -> None:
        try:
            self._end = work(self)
        except BackendError as error:
            self._end = error
        except BaseException as error:  # an exception of a thread reaches nobody
            self._end = BackendError(f"SkyPilot: {type(error).__name__}: {error}; {CHECK}")
        self._ordered.set()


@dataclass
class Lines:
    """Splits output into complete lines, without SkyPilot's colours and prefixes."""

    _rest: str = ""

    def feed(self, output: str) -> list[str]:
        """The lines that are complete now."""
        *lines, rest = (self._rest + output).replace("\r\n", "\n").split("\n")
        self._rest = rest[-LONGEST_LINE:]
        return [PREFIX.sub("", COLOUR.sub("", line[-LONGEST_LINE:])) for line in lines]


@dataclass
class Follower:
    """A launch, from its order to its end. `is_up` asks the cloud; `log` gets all output.

    `first_report`: file with the offset between the job's clock and the launch's, for a process that rejoins it.
    """

    job: Job
    launch: Launch
    following: Stream
    is_up: Callable[[], bool]
    clock: Clock
    timeouts: Timeouts
    started_s: float
    log: IO[str]
    first_report: Path
    last_report_s: float | None = None
    last_output_s: float = 0.0
    output: str = ""
    exit_status: int | None = None
    lines: Lines = field(default_factory=Lines)

    def events(self) -> Iterator[Event]:
        """The events, until the job ends or the lifetime is over. A launch that fails raises `BackendError`."""
        reader = Reader(self.job, offset_s=self._stored_offset_s())
        self.last_output_s = self._now_s()
        while True:
            end = self.following.end()  # checked before reading, so that no output is missed
            reports = reader.reports
            samples = self._read(reader)
            if reader.reports > reports:  # also a heartbeat: a report may contain no new sample
                self.last_report_s = self._now_s()
                if reader.offset_s is not None and not self.first_report.exists():
                    self.first_report.write_text(repr(reader.offset_s), encoding="utf-8")
            yield from samples
            ended = self._ended(end)
            if ended is not None and self.exit_status != TIME_OVER:
                yield ended
            if ended is not None or self._now_s() >= self.timeouts.stop_s(self.launch):
                return
            self.clock.wait(POLL_S)

    def _stored_offset_s(self) -> float | None:
        try:
            return float(self.first_report.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not stored yet, or damaged
            return None

    def _read(self, reader: Reader) -> list[Sample]:
        output = self.following.read()
        if not output:
            return []
        self.last_output_s = self._now_s()
        self.log.write(output)
        self.log.flush()
        samples: list[Sample] = []
        for line in self.lines.feed(output):
            self.output = f"{self.output}{line}\n"[-KEPT_OUTPUT:]
            if (exit_line := _EXIT.match(line)) is not None:
                # The first node's end is the job's end; of the other nodes only a failure counts.
                if self.exit_status is None and (exit_line[2] == "0" or exit_line[1] != "0"):
                    self.exit_status = int(exit_line[1])
            elif not line.startswith(ELSEWHERE) and self.following.submitted():
                samples += reader.feed(line + "\n", self._now_s())
        return [sample for sample in samples if sample.elapsed_s <= self.timeouts.stop_s(self.launch)]

    def _ended(self, end: int | BackendError | None) -> Ended | None:
        """How it ended; None while it runs."""
        if self.exit_status is not None:
            return self._job_ended(self.exit_status)
        if end is None:
            return self._check_timeouts()
        if end == 0:
            return self._job_ended(0)
        if isinstance(end, NothingOrdered):
            raise end
        if self.following.submitted() and self._is_lost():
            return self._lost()
        if isinstance(end, BackendError):
            raise end
        return self._job_ended(1)

    def _job_ended(self, status: int) -> Ended:
        if status == 0 and self.last_report_s is None:
            return self._ended_with_log(Outcome.FAILED, NEVER_REPORTED)
        if status == 0:
            return Ended(self._now_s(), Outcome.OK)
        # A job that lost a peer fails with an error of its own: check the machines first.
        if status != TIME_OVER and self._is_lost():
            return self._lost()
        diagnosis = diagnose(status, self.output)
        return self._ended_with_log(diagnosis.outcome, diagnosis.advice)

    def _check_timeouts(self) -> Ended | None:
        """Whether the machines or the next report are overdue."""
        now_s = self._now_s()
        if not self.following.submitted():
            if now_s > self.timeouts.first_report_s:
                return self._ended_with_log(Outcome.LAUNCH_FAILED, f"the machines were not up in {now_s:.0f} s")
            return None
        if now_s - self.last_output_s >= SILENCE_S:
            self.last_output_s = now_s  # check again after the same time
            if self._is_lost():
                return self._lost()
        advice = self.timeouts.overdue(now_s, self.last_report_s)
        return None if advice is None else self._ended_with_log(Outcome.TIMED_OUT, advice)

    def _is_lost(self) -> bool:
        try:
            return not self.is_up()
        except BackendError:  # unreachable does not mean lost
            return False

    def _lost(self) -> Ended:
        what = "taken back by the cloud" if self.launch.configuration.offer.spot else "no longer up"
        return self._ended_with_log(Outcome.PREEMPTED, f"its machines were {what}")

    def _ended_with_log(self, outcome: Outcome, detail: str) -> Ended:
        return Ended(self._now_s(), outcome, detail, last_lines(self.output))

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s
