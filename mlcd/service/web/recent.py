"""The newest events of all runs, for who watches them all: a stretch of one long sequence, which is cut off behind."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

MOST = 10_000


class Recent:
    """Events by their place in the sequence. Entries of the ledger have a number, changes of state have none."""

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
        """The place of the next event."""
        return self.start + len(self._events)

    def add(self, number: int | None, event: bytes) -> None:
        """One more event."""
        last = self._numbers[-1] if self._numbers else self._before
        self._events.append((number, event))
        self._numbers.append(number if number is not None else last)
        if len(self._events) > 2 * self._most:  # seldom, since it moves all that is left
            gone = len(self._events) - self._most
            self._before = self._numbers[gone - 1]
            del self._events[:gone], self._numbers[:gone]
            self.start += gone

    def place_after(self, number: int) -> int | None:
        """Where the events begin that come after this entry; None where some of them are gone from here."""
        if number < self._before:
            return None
        return self.start + bisect_right(self._numbers, number)

    def from_(self, place: int) -> list[tuple[int | None, bytes]] | None:
        """The events from this place on; None where that is gone from here."""
        return self._events[place - self.start :] if place >= self.start else None

    def wake(self) -> None:
        """Tell whoever watches."""
        self.changed.set()
        self.changed = asyncio.Event()
