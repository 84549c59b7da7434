"""Connections on which nobody asks anything: each takes a place that another could have, and costs its owner nothing.

The server itself closes those that are idle after an answer. Those that never ask, or that send a request a letter a
minute, it would keep for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LOOKS_EVERY_S = 15
"""A request's headers have so long to come, and up to twice that."""


class Silent:
    """Looks at all connections now and then, and closes those that were waiting for the same request before."""

    def __init__(self) -> None:
        self._waiting: dict[Any, Any] = {}

    def look(self, connections: Iterable[Any]) -> None:
        """Once more. The connections are uvicorn's: `cycle` is the newest request, and its answer."""
        before = self._waiting
        self._waiting = {each: each.cycle for each in connections if each.cycle is None or each.cycle.response_complete}
        for each, newest in self._waiting.items():
            if each in before and before[each] is newest:
                each.transport.close()
