"""What takes long is done for each member a few at a time; the rest of theirs waits, and holds up nobody else.

A job or a model is read in a child process, and a thread of the service waits for it. There are some dozens of these,
for all: who sends fifty jobs at once would have them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mlcd.service.web.failures import Refusal

AT_ONCE = 2
"""Half of the children that read at the same time (reading/limited.py)."""
PATIENCE_S = 20.0


class Turns:
    """Who is at it, and who waits for their turn, without a thread."""

    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._at_once, self._patience_s = at_once, patience_s
        self._places: dict[str, asyncio.Semaphore] = {}
        self._here: dict[str, int] = {}

    @asynccontextmanager
    async def of(self, whose: str) -> AsyncIterator[None]:
        """Inside it is their turn; `Refusal` if that takes too long."""
        place = self._places.setdefault(whose, asyncio.Semaphore(self._at_once))
        self._here[whose] = self._here.get(whose, 0) + 1
        try:
            try:
                async with asyncio.timeout(self._patience_s):
                    await place.acquire()
            except TimeoutError:
                told = f"{self._at_once} of yours are being read, and others wait; come again in 5 s"
                raise Refusal(429, told, {"Retry-After": "5"}) from None
            try:
                yield
            finally:
                place.release()
        finally:
            self._here[whose] -= 1
            if not self._here[whose]:
                del self._here[whose], self._places[whose]
