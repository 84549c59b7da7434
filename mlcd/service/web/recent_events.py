"""The newest events of all runs, for streams of all runs: a window of one long sequence, which is cut at the start."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

MOST = 10_000


class RecentEvents:
    """Events by their position in the sequence. Ledger entries have a number, changes of state have none."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._events: list[tuple[int | None, bytes]] = []
        self._numbers: list[int] = []
        """For each event, the number of the last entry up to and with it."""
        self._before = 0
        self.start = 0
        self.changed = asyncio.Event()

    @property
    def end(self) -> int:
        """The position of the next event."""
        return self.start + len(self._events)

    def add(self, number: int | None, event: bytes) -> None:
        """Add an event."""
        last = self._numbers[-1] if self._numbers else self._before
        self._events.append((number, event))
        self._numbers.append(number if number is not None else last)
        if len(self._events) > 2 * self._most:  # rarely, since it moves all that remains
            cut = len(self._events) - self._most
            self._before = self._numbers[cut - 1]
            del self._events[:cut], self._numbers[:cut]
            self.start += cut

    def position_after(self, number: int) -> int | None:
        """The position of the first event after this entry; None if some of them are already cut off."""
        if number < self._before:
            return None
        return self.start + bisect_right(self._numbers, number)

    def from_(self, position: int) -> list[tuple[int | None, bytes]] | None:
        """The events from this position on; None if that is already cut off."""
        return self._events[position - self.start :] if position >= self.start else None

    def wake(self) -> None:
        """Wake the watchers."""
        self.changed.set()
        self.changed = asyncio.Event()
