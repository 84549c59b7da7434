"""A launch in progress, followed in a thread: SkyPilot's calls block, and the main thread has to watch the clock."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Terminal colours in SkyPilot's output."""
PREFIX = re.compile(r"^\([^()]*\bpid=\d+[^()]*\) ?")
"""SkyPilot's prefix of every line of a job: (head, rank=0, pid=2317)."""
STOP_WITHIN_S = 600.0
"""Timeout of sending a task with its files when the launch is stopped meanwhile."""


class ClusterState(StrEnum):
    """State of an existing cluster. One that is starting, or has lost nodes, is NOT_UP."""

    UP = "up"
    NOT_UP = "not up"


class EndKind(StrEnum):
    """How a launch ended, as far as SkyPilot knows."""

    DONE = "done"
    FAILED = "failed"
    """The job or its setup failed."""
    NO_CAPACITY = "no capacity"
    """The machines were not available; a later launch may get them."""
    NO_ACCESS = "no access"
    """SkyPilot cannot use any cloud, or this user cannot use SkyPilot: every other launch would fail, too."""
    BROKEN = "broken"
    """SkyPilot, or the connection to it, failed."""


@dataclass(frozen=True)
class End:
    """The end of a launch, in one sentence."""

    kind: EndKind
    message: str = ""


class Stream:
    """Runs `work` in a thread; its output and its end can be read at any time.

    A daemon thread, so that Ctrl-C never waits for it.
    """

    def __init__(self, work: Callable[[Stream], End]) -> None:
        self._written: deque[str] = deque()  # safe to append to in one thread while another one pops
        self._submitted, self._ordered, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._end: End | None = None
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

    def end(self) -> End | None:
        """How it ended; None while it runs."""
        return self._end

    def stop(self) -> None:
        """Stop. Waits for an order that is being sent, so that `Sdk.down` finds everything that may still start."""
        self._stopped.set()
        self._ordered.wait(STOP_WITHIN_S)

    def _run(self, work: Callable[[Stream], End]) -> None:
        try:
            end = work(self)
        except BaseException as error:  # an exception of a thread reaches nobody
            end = End(EndKind.BROKEN, f"{type(error).__name__}: {error}".strip())
        self._end = end
        self._ordered.set()
