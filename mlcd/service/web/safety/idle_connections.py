"""Closes connections that send no request: each uses a slot, and costs its owner nothing (slow loris).

The server itself closes connections that are idle after a response. It would keep those that never send a request, or
send one very slowly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

CHECK_EVERY_S = 15
"""Checking interval: a request's headers may take once to twice this time."""


class IdleConnections:
    """Closes connections that were already waiting for the same request at the last check."""

    def __init__(self) -> None:
        self._waiting: dict[Any, Any] = {}

    def close_idle(self, connections: Iterable[Any]) -> None:
        """Check all connections. They are uvicorn's: `cycle` is the newest request and its response."""
        before = self._waiting
        self._waiting = {each: each.cycle for each in connections if each.cycle is None or each.cycle.response_complete}
        for each, newest in self._waiting.items():
            if each in before and before[each] is newest:
                each.transport.close()
