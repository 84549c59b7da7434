"""A crew that tells the feed whom it has sent: a run that somebody is about to drive is not over."""

from __future__ import annotations

import math
import time

from mlcd.service.web.feed import Feed
from mlcd.service.workers.crew import Crew

COUNTED_FOR_S = 1.0


class Expecting:
    """The crew it is given, and a word to the feed."""

    def __init__(self, crew: Crew, feed: Feed) -> None:
        self._crew, self._feed = crew, feed
        self._alive, self._counted_at_s = 0, -math.inf

    def send(self, run: str, launch: bool = False) -> None:
        """Begin a run, or go on with one; whoever watches it waits for that."""
        self._crew.send(run, launch)
        self._feed.expect(run)

    def stop(self, run: str) -> None:
        """Ask a run to stop."""
        self._crew.stop(run)

    def down(self, run: str) -> None:
        """End a run now."""
        self._crew.down(run)

    def withdraw(self, run: str) -> bool:
        """Let nobody go on with a run who has not begun to."""
        return self._crew.withdraw(run)

    def alive(self) -> int:
        """How many are at work; counted now and then, for /health is asked by anybody, as often as they like."""
        if time.monotonic() - self._counted_at_s > COUNTED_FOR_S:
            self._alive, self._counted_at_s = self._crew.alive(), time.monotonic()
        return self._alive

    def close(self) -> None:
        """Send nobody any more."""
        self._crew.close()
