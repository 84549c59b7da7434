"""A launch in progress: followed in a thread, since SkyPilot's calls block, and its output turned into events.

Events are progress, the end of the job, timeouts and lost machines.
"""

import json
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from pathlib import Path
from typing import IO

from mlcd.clouds.live import KEPT_OUTPUT, NEVER_REPORTED, Timeouts, stalled
from mlcd.clouds.platforms import Reads, diagnose
from mlcd.clouds.platforms.failures import last_lines
from mlcd.clouds.skypilot.leave import Leaving
from mlcd.clouds.skypilot.lines import Line, Lines
from mlcd.clouds.skypilot.presence import ASK_AGAIN_S, SILENT_S, Answer, NodeClock, OldAnswer, Presence, Watch
from mlcd.clouds.skypilot.task import ELSEWHERE, has_cached_mount
from mlcd.core.backend import Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, NothingOrdered
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome, Sample

POLL_S = 1.0
TIME_OVER = 124
"""Exit status of `timeout` when the launch's lifetime is over."""
CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""
ASKED_AGAIN = 8
"""How often the cloud is asked for machines whose job has ended badly, where it says what it knew before."""
SETUP_FAILED = "(status: FAILED_SETUP)"
"""What SkyPilot writes when the user's `setup` fails."""
STOP_WITHIN_S = 600.0
"""Timeout of sending a task with its files when the launch is stopped meanwhile."""


class NeverReached(BackendError):
    """Machines came up, and SkyPilot could not log in: bad luck of this launch, and no fault of the place."""


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
class Follower:
    """A launch, from its order to its end. `is_up` asks the cloud and waits, `ask` does not; `log` gets the output.

    `leaving`: how the job is asked to leave. `make_reader`: reads the output, with a stored offset between the job's
    clock and the launch's. `first_report`: file with the offsets, for a process that rejoins the launch.
    Samples are held back until all nodes are known to have been there: those after the loss of a node are dropped.
    """

    job: Job
    launch: Launch
    following: Stream
    is_up: Callable[[], bool | None]
    ask: Callable[[], Answer]
    clock: Clock
    timeouts: Timeouts
    started_s: float
    log: IO[str]
    first_report: Path
    leaving: Leaving
    make_reader: Callable[[float | None], Reads]
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
        self.presence = Presence(self.launch.configuration.nodes)
        self.watch = Watch(self.ask, self.presence, self._now_s())

    def events(self) -> Events:
        """The events, until the job ends or the lifetime is over. A launch that fails raises `BackendError`."""
        try:
            while True:
                end = self.following.end()  # checked before reading, so that no output is missed
                reports = self.reader.reports
                self.held += self._read()
                if self.reader.reports > reports:  # also a heartbeat: a report may contain no new sample
                    self.last_report_s = self._now_s()
                    self._store_offsets()
                for sample in self._released(self.presence.known_until_s) or self._stalled():
                    if (yield sample):
                        self.leaving.request(self._now_s())
                ended = self._ended(end)
                if ended is not None and self.exit_status != TIME_OVER:
                    if ended.outcome is not Outcome.PREEMPTED:
                        yield from self._released(inf)
                    if ended.outcome is not Outcome.OK or not self.leaving.is_unfinished(self.last):
                        yield ended
                if ended is not None or self._is_over(self._now_s()):
                    return
                if self._now_s() >= self.leaving.due_s and self.last is not None:
                    self.leaving.request(self._now_s())
                self.clock.wait(POLL_S)
        finally:
            self.log.write(self.lines.end())

    def _is_over(self, now_s: float) -> bool:
        return now_s >= self.timeouts.stop_s(self.launch) or self.leaving.is_overdue(now_s)

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
        lines = self.lines.feed(self.following.read())
        if not lines:
            return []
        self.log.write("".join(line.shown for line in lines))
        self.log.flush()
        samples: list[Sample] = []
        reporting = [line for line in lines if self._hear(line)]
        for at, together in groupby(reporting, key=lambda line: line.at):
            text = "".join(f"{line.text}\n" for line in together)
            samples += self.reader.feed(text, self._elapsed_s(at))
        return [sample for sample in samples if sample.elapsed_s <= self.timeouts.stop_s(self.launch)]

    def _hear(self, line: Line) -> bool:
        """Note what a line says about the nodes; return whether it may contain a report of progress."""
        if line.alive is not None:
            self.presence.hear(line.alive, self._elapsed_s(line.at))
            return False
        self.output = f"{self.output}{line.text}\n"[-KEPT_OUTPUT:] if line.text else self.output
        if line.exit is None:
            if line.at is not None:
                self.presence.hear(0, self._elapsed_s(line.at))
            return not line.text.startswith(ELSEWHERE) and self.following.submitted()
        status, node = line.exit
        self.presence.hear(node, self._elapsed_s(line.at))
        if status == 0:
            self.presence.end(node)
        # The first node's end is the job's end; of the other nodes only a failure counts.
        if self.exit_status is None and (node == 0 or status != 0):
            self.exit_status = status
        return False

    def _elapsed_s(self, at: float | None) -> float:
        """When a line was written; without a time on it, now."""
        return self._now_s() if at is None else self.node_clock.elapsed_s(at, self._now_s())

    def _released(self, until_s: float) -> list[Sample]:
        """The samples up to a time, which are no longer held back."""
        released = [sample for sample in self.held if sample.elapsed_s <= until_s]
        self.held = self.held[len(released) :]
        self.last = released[-1] if released else self.last
        return released

    def _stalled(self) -> list[Sample]:
        """The last sample once more, if nothing has come for a while."""
        again = [] if self.held else stalled(self.launch, self.last, self._now_s())
        self.last = again[-1] if again else self.last
        return again

    def _ended(self, end: int | BackendError | None) -> Ended | None:
        """How it ended; None while it runs."""
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
        if self.following.submitted() and self._is_lost():
            return self._lost()
        if isinstance(end, BackendError):
            raise end
        return self._job_ended(1)

    def _job_ended(self, status: int) -> Ended:
        if status == 0 and self.last_report_s is None:
            return self._ended_with_log(Outcome.FAILED, NEVER_REPORTED)
        if status == 0:
            return self._lost() if self._was_lost_before_the_end() else Ended(self._now_s(), Outcome.OK)
        # A job that lost a peer fails with an error of its own: check the machines first.
        if status != TIME_OVER and self._is_lost():
            return self._lost()
        diagnosis = diagnose(status, self.output)
        return self._ended_with_log(diagnosis.outcome, diagnosis.advice)

    def _check_timeouts(self) -> Ended | None:
        """Whether the machines are lost or overdue, or the next report is."""
        now_s = self._now_s()
        if not self.following.submitted():
            if now_s > self.timeouts.first_report_s:
                return self._ended_with_log(Outcome.LAUNCH_FAILED, f"the machines were not up in {now_s:.0f} s")
            return None
        if self.watch.is_lost(now_s):
            return self._lost()
        advice = self.timeouts.overdue(now_s, self.last_report_s)
        return None if advice is None else self._ended_with_log(Outcome.TIMED_OUT, advice)

    def _was_lost_before_the_end(self) -> bool:
        """Whether the first node's job ended well without a node that was lost before.

        The cloud is asked, but only soon after the end: an idle cluster tears itself down a minute later. Where the
        cloud cannot tell, a node that was silent at the end was lost.
        """
        if self.presence.have_others_ended:
            return False
        is_soon = self._now_s() - self.presence.latest_s < SILENT_S
        up = self._ask_now() if is_soon else None
        if up is False:  # asked twice, as in `Watch`
            self.clock.wait(ASK_AGAIN_S)
            up = self._ask_now()
        return not up if up is not None else self.presence.is_one_silent

    def _ask_now(self) -> bool | None:
        """Whether the cluster is up; None if it does not exist any more, or the cloud cannot be asked."""
        with suppress(BackendError):
            return self.is_up()
        return None

    def _is_lost(self) -> bool:
        """Whether the machines of a job that has failed are not all there.

        Where the cloud cannot be reached, they are not taken for lost. A cluster that is gone a minute after the job
        may have torn itself down.
        """
        idle_from_s = self._now_s() + SILENT_S
        for _ in range(ASKED_AGAIN):
            try:
                up = self.is_up()
            except OldAnswer:
                self.clock.wait(ASK_AGAIN_S)
            except BackendError:
                return False
            else:
                may_be_idle = up is None and self._now_s() >= idle_from_s
                return self._was_probably_lost() if may_be_idle else up is not True
        return False

    def _was_probably_lost(self) -> bool:
        """Judged by all but the cloud, which cannot tell any more."""
        if SETUP_FAILED in self.output:  # the machines were there to say so
            return False
        return self.launch.rented.offer.spot or self.presence.is_one_silent

    def _lost(self) -> Ended:
        what = "taken back by the cloud" if self.launch.rented.offer.spot else "no longer up"
        which = "its machines" if self.presence.nodes == 1 else "some or all of its machines"
        return self._ended_with_log(Outcome.PREEMPTED, f"{which} were {what}")

    def _ended_with_log(self, outcome: Outcome, detail: str) -> Ended:
        return Ended(self._now_s(), outcome, detail, last_lines(self.output))

    def _now_s(self) -> float:
        return self.clock.elapsed_s() - self.started_s
