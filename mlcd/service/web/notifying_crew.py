"""A crew that notifies the feed when it sends a run: such a run is about to be driven, so it is not over."""

from __future__ import annotations

import math
import time

from mlcd.service.web.feed import Feed
from mlcd.service.workers.crew import Crew

CACHED_S = 1.0


class NotifyingCrew:
    """Wraps a crew, and notifies the feed."""

    def __init__(self, crew: Crew, feed: Feed) -> None:
        self._crew, self._feed = crew, feed
        self._alive, self._counted_at_s = 0, -math.inf

    def send(self, run: str, launch: bool = False) -> None:
        """Start or resume a run; its watchers wait for that."""
        self._crew.send(run, launch)
        self._feed.expect(run)

    def stop(self, run: str) -> None:
        """Ask a run to stop."""
        self._crew.stop(run)

    def down(self, run: str) -> None:
        """End a run now."""
        self._crew.down(run)

    def withdraw(self, run: str) -> bool:
        """Take a run out of the queue."""
        return self._crew.withdraw(run)

    def alive(self) -> int:
        """How many processes are alive; cached, since anybody can call /health at any rate."""
        if time.monotonic() - self._counted_at_s > CACHED_S:
            self._alive, self._counted_at_s = self._crew.alive(), time.monotonic()
        return self._alive

    def close(self) -> None:
        """Start no more processes."""
        self._crew.close()
