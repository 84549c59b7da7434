"""Clocks, as objects that are passed in, so that tests need not wait. Nothing else in MLCD reads the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

T = TypeVar("T")

_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that is never set and that counts on while this machine sleeps, as rented machines go on being billed."""
SIGNAL_POLL_S = 0.5
"""How often the main thread wakes up to handle Ctrl-C while it waits for others."""
_thread = threading.local()
"""In a thread of `WallClock.run_concurrently`: the event that stands for Ctrl-C there."""


class Clock(Protocol):
    """The time of day, for records, and the time that a run has used of its deadline."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def elapsed_s(self) -> float:
        """Seconds since the run began."""

    def wait(self, seconds: float) -> None:
        """Let this time pass."""

    def run_concurrently(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do all of these at the same time: it takes as long as the longest."""


@dataclass(frozen=True)
class WallClock:
    """Real time. A deadline counts on while MLCD is not running, so a resumed run counts from its first start.

    The time of day is read once; then a steady clock counts. If somebody set the system's clock during a probe, its
    bill would otherwise be hours too long, or negative.
    """

    started_at: datetime
    time_of_day: Callable[[], datetime] = lambda: datetime.now(UTC)
    steady_s: Callable[[], float] = lambda: time.clock_gettime(_STEADY)
    _zero_s: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        before_s = max(0.0, (self.time_of_day() - self.started_at).total_seconds())
        object.__setattr__(self, "_zero_s", self.steady_s() - before_s)

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return self.time_of_day()

    def elapsed_s(self) -> float:
        """Seconds since the run began, whether or not MLCD was running."""
        return self.steady_s() - self._zero_s

    def wait(self, seconds: float) -> None:
        """Sleep."""
        pressed: threading.Event | None = getattr(_thread, "pressed", None)
        if pressed is None:
            time.sleep(seconds)
        elif pressed.wait(seconds):
            pressed.clear()
            raise KeyboardInterrupt

    def run_concurrently(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these in threads. Ctrl-C, which only the main thread receives, is passed on to all of them."""
        if len(works) == 1:  # in this thread, which receives Ctrl-C
            return [works[0]()]
        presses = [threading.Event() for _ in works]

        def press() -> None:
            for pressed in presses:
                pressed.set()

        with ThreadPoolExecutor(len(works)) as pool:
            try:
                futures = [pool.submit(_with_ctrl_c, event, work) for event, work in zip(presses, works, strict=True)]
            except KeyboardInterrupt:
                press()
                raise
            while not all(future.done() for future in futures):
                try:
                    wait(futures, SIGNAL_POLL_S)
                except KeyboardInterrupt:
                    press()
            return [future.result() for future in futures]


def _with_ctrl_c(pressed: threading.Event, work: Callable[[], T]) -> T:
    _thread.pressed = pressed
    return work()


@dataclass
class VirtualClock:
    """The time of a recorded or simulated cloud: it advances only when the cloud says so."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """The real time of day, as entries record when they were really written."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Virtual seconds since the run began."""
        return self.seconds

    def wait(self, seconds: float) -> None:
        """Advance by this time."""
        self.seconds += seconds

    def run_concurrently(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these one by one, each starting at the current time, then advance to the end of the longest."""
        start_s = latest_s = self.seconds
        results = []
        for work in works:
            self.seconds = start_s
            results.append(work())
            latest_s = max(latest_s, self.seconds)
        self.seconds = latest_s
        return results

    def advance_to(self, seconds: float) -> None:
        """Advance to this time."""
        if seconds < self.seconds:
            raise ValueError(f"time cannot go back from {self.seconds} s to {seconds} s")
        self.seconds = seconds
