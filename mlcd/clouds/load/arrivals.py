"""When requests are sent.

Open loop: at times that are fixed in advance and do not depend on the server, as with independent users. Closed loop: a
fixed number of clients, each of which sends its next request when its last one is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

BLOCK = 1_024
"""Gaps drawn at once."""


@dataclass(frozen=True, slots=True)
class Open:
    """Poisson arrivals, `rate` a second.

    `most_outstanding`: most connections. A request that is due while all are busy waits for one; its latency still
    counts from when it was due, and it is reported as late.
    """

    rate: float
    seed: int = 0
    most_outstanding: int = 512

    def due_s(self) -> Iterator[float]:
        """When each request is due, in seconds from the start."""
        rng, now_s = np.random.default_rng(self.seed), 0.0
        while True:
            for gap_s in rng.exponential(1 / self.rate, BLOCK).tolist():
                now_s += gap_s
                yield now_s


@dataclass(frozen=True, slots=True)
class Closed:
    """`concurrency` requests are in flight at any time. A client whose request failed pauses before its next one."""

    concurrency: int
    pause_s: float = 0.1


Arrivals = Open | Closed
