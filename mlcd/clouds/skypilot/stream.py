"""A launch that is followed in a thread: SkyPilot's calls wait, whoever watches the clock must not."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable

from mlcd.clouds.skypilot.client import End, EndKind

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Of a terminal, in what SkyPilot writes."""
PREFIX = re.compile(r"^\([^()]*\bpid=\d+[^()]*\) ?")
"""SkyPilot's own, before every line of a job: (head, rank=0, pid=2317)."""
STOP_WITHIN_S = 600.0
"""To hand a task over, its files included, before a launch is given up for lost."""


class Stream:
    """What `work` writes and how it ends, to be asked for at any time. `work` says when its order is out.

    A thread of its own that dies with the process: a user's Ctrl-C never waits for it.
    """

    def __init__(self, work: Callable[[Stream], End]) -> None:
        self._written: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._submitted, self._ordered, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._end: End | None = None
        self._thread = threading.Thread(target=self._do, args=(work,), daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """For `work`: more output."""
        self._written.put(text)

    def ordered(self) -> None:
        """For `work`: from now on whatever comes up can be found by its name."""
        self._ordered.set()

    def started(self) -> None:
        """For `work`: the machines have the job."""
        self._submitted.set()

    @property
    def stopped(self) -> bool:
        """For `work`: whether to give up."""
        return self._stopped.is_set()

    def submitted(self) -> bool:
        """Whether the machines are up and have the job."""
        return self._submitted.is_set()

    def read(self) -> str:
        """What was written since it was last asked."""
        found = []
        while True:
            try:
                found.append(self._written.get_nowait())
            except queue.Empty:
                return "".join(found)

    def end(self) -> End | None:
        """How it ended, None while it goes on."""
        return self._end

    def stop(self) -> None:
        """Give up. An order that is just going out is waited for: only then can it be undone."""
        self._stopped.set()
        self._ordered.wait(STOP_WITHIN_S)

    def _do(self, work: Callable[[Stream], End]) -> None:
        try:
            end = work(self)
        except BaseException as error:  # in a thread there is nobody else to hear of it
            end = End(EndKind.BROKEN, f"{type(error).__name__}: {error}".strip())
        self._end = end
        self._ordered.set()
