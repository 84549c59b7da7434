"""Time, as an object that is handed in. Nothing else in MLCD asks what time it is."""

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
"""Nobody sets it, and it goes on while this machine sleeps, as rented ones do."""
SIGNAL_POLL_S = 0.5
"""A signal that another thread was woken for is heard by the first one when it next looks."""
_thread = threading.local()
"""Of a thread of `WallClock.together`: the event that is its Ctrl-C."""


class Clock(Protocol):
    """The time of day for the record, and the time a run has used of its deadline."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def elapsed_s(self) -> float:
        """Seconds since the run began."""

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""

    def run_concurrently(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these at once; it takes as long as the longest."""


@dataclass(frozen=True)
class WallClock:
    """Real time. A deadline goes on while nobody is driving, so a resumed run counts from its first start.

    The time of day is asked once. From then on the steady clock counts: were it set in the middle of a probe, that
    would be billed for hours, or for less than nothing.
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
        """Do these at once, in threads. Ctrl-C, which this thread alone hears, ends what each of them waits for."""
        if len(works) == 1:  # in this thread, where Ctrl-C is heard
            return [works[0]()]
        presses = [threading.Event() for _ in works]

        def press() -> None:
            for pressed in presses:
                pressed.set()

        with ThreadPoolExecutor(len(works)) as pool:
            try:
                futures = [pool.submit(_hearing, pressed, work) for pressed, work in zip(presses, works, strict=True)]
            except KeyboardInterrupt:
                press()
                raise
            while not all(future.done() for future in futures):
                try:
                    wait(futures, SIGNAL_POLL_S)
                except KeyboardInterrupt:
                    press()
            return [future.result() for future in futures]


def _hearing(pressed: threading.Event, work: Callable[[], T]) -> T:
    _thread.pressed = pressed
    return work()


@dataclass
class VirtualClock:
    """The time of a recorded or simulated cloud: it moves only when that cloud works."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """The real time of day: the record says when it was written, not when it pretends to be."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Seconds the cloud has worked for this run."""
        return self.seconds

    def wait(self, seconds: float) -> None:
        """Move on."""
        self.seconds += seconds

    def run_concurrently(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these one by one, each from now on; then it is as late as after the longest."""
        start_s = latest_s = self.seconds
        results = []
        for work in works:
            self.seconds = start_s
            results.append(work())
            latest_s = max(latest_s, self.seconds)
        self.seconds = latest_s
        return results

    def advance_to(self, seconds: float) -> None:
        """Let time pass until then."""
        if seconds < self.seconds:
            raise ValueError(f"time cannot go back from {self.seconds} s to {seconds} s")
        self.seconds = seconds
