"""An event loop whose timers are precise enough to time small models."""

from __future__ import annotations

import asyncio
import select
import selectors
import sys


def precise_loop() -> asyncio.AbstractEventLoop:
    """A new event loop with precise timers.

    epoll wakes up to a millisecond late, which would distort a small model's latency. select is precise, but slow with
    many connections; waiting by select for epoll's own descriptor is precise and fast. Other systems have no epoll.
    """
    return asyncio.SelectorEventLoop(_Precise()) if sys.platform == "linux" else asyncio.new_event_loop()


if sys.platform == "linux":

    class _Precise(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)
