"""A driver's signs of life, in memory that it shares with whoever sent it.

A process that hangs in C code hears neither signals nor wishes, and no thread of it runs. So whoever sent it watches
from outside: a thread of the driver writes the time again and again, and before each launch the driver says by when
that must be over.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue

from mlcd.core.ledger import Line, Reserved, Settled, Voided
from mlcd.service.workers.pace import Pace

BEATS_EVERY_S = 1.0
DEADLINE = "the run's deadline"
COMPUTING = "computing"


class Pulse:
    """Of one driver. Times are of the system's monotonic clock, which all processes share."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._beat_s = RawValue("d", now())
        self._end_s = RawValue("d", math.inf)
        self._ends_s: dict[str, float] = {}

    def start(self) -> None:
        """Beat from now on, in a thread: it stands still when the process does."""

        def beat() -> None:
            while True:
                self.beat()
                time.sleep(BEATS_EVERY_S)

        threading.Thread(target=beat, daemon=True).start()

    def beat(self) -> None:
        """Show that the process lives."""
        self._beat_s.value = self._now()

    def end_within(self, what: str, seconds: float) -> None:
        """Say that something under way is over within so many seconds."""
        self._ends_s[what] = self._now() + seconds
        self._end_s.value = min(self._ends_s.values(), default=math.inf)

    def hear(self, line: Line) -> None:
        """An entry was written: a launch is bound to its lifetime until it is settled."""
        entry = line.entry
        if isinstance(entry, Reserved) and entry.launch.lifetime_s is not None:
            self.end_within(entry.launch.label, entry.launch.lifetime_s)
        elif isinstance(entry, Settled | Voided):
            self._ends_s.pop(entry.launch.label, None)
            self._end_s.value = min(self._ends_s.values(), default=math.inf)

    @property
    def silent_s(self) -> float:
        """Seconds since it last showed that it lives."""
        return self._now() - float(self._beat_s.value)

    @property
    def late_s(self) -> float:
        """Seconds since something should have been over; below zero where there is time."""
        return self._now() - float(self._end_s.value)


@dataclass
class Watch:
    """Finds out whether a driver has to be ended from outside."""

    pulse: Pulse
    pace: Pace
    now: Callable[[], float] = time.monotonic
    _down_since_s: float | None = None

    def why(self, wish: str | None) -> str | None:
        """Why it has to be ended, if it has; `wish`: what its user wants of it now."""
        if wish == "down" and self._down_since_s is None:
            self._down_since_s = self.now()
        if self.pulse.late_s > self.pace.late_s:
            return f"its process went on for {self.pulse.late_s:.0f} s after it should have ended, and was ended"
        if self.pulse.silent_s > (self.pace.hung_s if wish is None else self.pace.unheard_s):
            return f"its process gave no sign of life for {self.pulse.silent_s:.0f} s, and was ended"
        if self._down_since_s is not None and self.now() - self._down_since_s > self.pace.down_s:
            return f"its process did not end within {self.pace.down_s:.0f} s of being told to, and was ended"
        return None
