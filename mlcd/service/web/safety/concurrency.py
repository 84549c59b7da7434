"""Concurrency limits for each member: slow requests run a few at a time; more of the same member wait.

A job or a model is read in a child process while a thread of the service waits for it. There are some dozens of threads
for all members: without a limit, one who sends fifty jobs at once would use them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mlcd.service.web.failures import Refusal

AT_ONCE = 2
"""Half of the children that can run in parallel (reading/limited.py)."""
SLOT_TIMEOUT_S = 20.0


class ConcurrencyLimits:
    """The slots of each member. Waiting for one takes no thread."""

    def __init__(self, at_once: int = AT_ONCE, timeout_s: float = SLOT_TIMEOUT_S) -> None:
        self._at_once, self._timeout_s = at_once, timeout_s
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def slot(self, whose: str) -> AsyncIterator[None]:
        """Hold a slot inside the block; `Refusal` if waiting for it takes too long."""
        slots = self._slots.setdefault(whose, asyncio.Semaphore(self._at_once))
        self._users[whose] = self._users.get(whose, 0) + 1
        try:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await slots.acquire()
            except TimeoutError:
                message = f"{self._at_once} of your requests are being read, and others wait; try again in 5 s"
                raise Refusal(429, message, {"Retry-After": "5"}) from None
            try:
                yield
            finally:
                slots.release()
        finally:
            self._users[whose] -= 1
            if not self._users[whose]:
                del self._users[whose], self._slots[whose]
