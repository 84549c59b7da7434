"""Time, as an object that is handed in. Nothing else in MLCD asks what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """The time of day for the record, and the time a run has used of its deadline."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        ...

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        ...

    def together(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these at once; it takes as long as the longest."""
        ...


@dataclass(frozen=True)
class WallClock:
    """Real time. A deadline goes on while nobody is driving, so a resumed run counts from its first start."""

    started_at: datetime

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Seconds since the run began, whether or not MLCD was running."""
        return max(0.0, time.time() - self.started_at.timestamp())

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def together(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do these at once, in threads."""
        if len(works) == 1:  # in this thread, where Ctrl-C is heard
            return [works[0]()]
        with ThreadPoolExecutor(len(works)) as pool:
            return [future.result() for future in [pool.submit(work) for work in works]]


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

    def together(self, works: Sequence[Callable[[], T]]) -> list[T]:
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
