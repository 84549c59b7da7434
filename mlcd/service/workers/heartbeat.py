"""A driver's heartbeat, in memory that it shares with its parent process.

A process that hangs in C code handles no signals, and none of its threads runs. So its parent watches it: a thread of
the driver writes the time every second, and before each launch the driver writes a deadline.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue

from mlcd.core.ledger import Line, Reserved, Settled, Voided
from mlcd.service.workers.limits import Timing

BEAT_EVERY_S = 1.0
DEADLINE = "the run's deadline"
COMPUTING = "computing"


class Heartbeat:
    """The heartbeat of one driver. Times are of the monotonic clock, which all processes share."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._beat_s = RawValue("d", now())
        self._deadline_s = RawValue("d", math.inf)
        self._deadlines_s: dict[str, float] = {}

    def start(self) -> None:
        """Beat in a thread, which stops when the process hangs."""

        def beat() -> None:
            while True:
                self.beat()
                time.sleep(BEAT_EVERY_S)

        threading.Thread(target=beat, daemon=True).start()

    def beat(self) -> None:
        """Write the current time."""
        self._beat_s.value = self._now()

    def set_deadline(self, what: str, seconds: float) -> None:
        """Set a deadline for something: so many seconds from now."""
        self._deadlines_s[what] = self._now() + seconds
        self._deadline_s.value = min(self._deadlines_s.values(), default=math.inf)

    def on_entry(self, line: Line) -> None:
        """A ledger entry was written: a launch has its lifetime as a deadline until it is settled."""
        entry = line.entry
        if isinstance(entry, Reserved) and entry.launch.lifetime_s is not None:
            self.set_deadline(entry.launch.label, entry.launch.lifetime_s)
        elif isinstance(entry, Settled | Voided):
            self._deadlines_s.pop(entry.launch.label, None)
            self._deadline_s.value = min(self._deadlines_s.values(), default=math.inf)

    @property
    def silent_s(self) -> float:
        """Seconds since the last heartbeat."""
        return self._now() - float(self._beat_s.value)

    @property
    def late_s(self) -> float:
        """Seconds since the earliest deadline; negative before it."""
        return self._now() - float(self._deadline_s.value)


@dataclass
class HangDetector:
    """Finds out whether a driver hangs and has to be ended."""

    heartbeat: Heartbeat
    timing: Timing
    now: Callable[[], float] = time.monotonic
    _down_since_s: float | None = None

    def reason_to_end(self, request: str | None) -> str | None:
        """Why the driver has to be ended; None if it is fine. `request`: what its user wants of it now."""
        if request == "down" and self._down_since_s is None:
            self._down_since_s = self.now()
        if self.heartbeat.late_s > self.timing.late_s:
            return f"its process went on for {self.heartbeat.late_s:.0f} s after it should have ended, and was ended"
        if self.heartbeat.silent_s > (self.timing.hung_s if request is None else self.timing.unresponsive_s):
            return f"its process gave no heartbeat for {self.heartbeat.silent_s:.0f} s, and was ended"
        if self._down_since_s is not None and self.now() - self._down_since_s > self.timing.down_s:
            return f"its process did not end within {self.timing.down_s:.0f} s of being told to, and was ended"
        return None
