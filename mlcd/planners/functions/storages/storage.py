"""A place where functions meet: what each of them can do, and what it says when it cannot.

Storage      keeps bytes under keys: S3, DynamoDB, Redis, and the parameter server, too
Averaging    a storage that averages by itself, as a parameter server does
Patient      what the clients share: they ask again, for some seconds, while a server does not answer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, TypeVar, runtime_checkable

from mlcd.core.clock import Clock, WallClock
from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages.vectors import Vector

T = TypeVar("T")
PATIENCE_S = 10.0
"""For how long a server may not answer, as it does while it restarts."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0


class StorageError(BackendError):
    """A storage did not do what it was asked; asking again would not help."""


class StorageGone(StorageError):
    """The storage does not answer any more, or has lost what it held: start over, in a new group."""


class Fate(Enum):
    """What an error of a storage's library means."""

    PASSES = "it may be better in a moment"
    LOST = "what was held is gone"
    REFUSED = "it will not be done"
    NOT_OURS = "it is no error of the storage"


class Storage(Protocol):
    """Keeps bytes under keys. For one thread at a time; everything it does may be done twice, with the same result."""

    @property
    def requests(self) -> int:
        """How often it was asked, those included that found nothing."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key, in the place of what is there."""
        ...

    def get(self, key: str) -> bytes | None:
        """What is under that key; None if nothing is."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these, whether or not they are there."""
        ...

    def clear(self, prefix: str) -> None:
        """Forget everything whose key begins so; a prefix of nothing is refused, as it would empty the storage."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


@runtime_checkable
class Averaging(Protocol):
    """A storage that averages by itself."""

    def average(
        self, group: str, step: int, rank: int, functions: int, vector: Vector, timeout_s: float
    ) -> Vector | tuple[int, ...]:
        """The mean over all ranks; after `timeout_s` without it, the ranks that did not come."""
        ...


class Patient:
    """Asks a server again while it does not answer, ever more slowly, and gives up after `patience_s`."""

    def __init__(self, name: str, url: str, clock: Clock | None = None, patience_s: float = PATIENCE_S) -> None:
        self.name, self.url = name, url
        self.clock: Clock = clock or WallClock(datetime.now(UTC))
        self.patience_s = patience_s
        self._requests = 0

    @property
    def requests(self) -> int:
        """How often the server was asked, those included that found nothing."""
        return self._requests

    def fate(self, error: Exception) -> Fate:
        """What an error means; each storage knows those of its library."""
        return Fate.PASSES if isinstance(error, OSError) else Fate.NOT_OURS

    def ask(self, request: Callable[[], T]) -> T:
        """What the request returns; an error that passes is waited out."""
        began_s, pause_s = self.clock.elapsed_s(), FIRST_PAUSE_S
        while True:
            self._requests += 1
            try:
                return request()
            except Exception as error:  # of any library: `fate` knows which are the storage's, the others go on
                fate, why = self.fate(error), one_line(error)
                if fate is Fate.NOT_OURS:
                    raise
                if fate is Fate.REFUSED:
                    raise StorageError(f"{self.name} at {self.url}: {why}") from error
                if fate is Fate.LOST:
                    raise self.gone(f"has lost what it held ({why})") from error
                waited_s = self.clock.elapsed_s() - began_s
                if waited_s + pause_s > self.patience_s:
                    raise self.gone(f"has not answered for {waited_s:.0f} s ({why})") from error
            self.clock.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def gone(self, why: str) -> StorageGone:
        """The error that says which storage it is, and where."""
        return StorageGone(f"{self.name} at {self.url} {why}")


def one_line(error: BaseException) -> str:
    """What an error says, in its first line; its name where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def some(prefix: str) -> str:
    """The prefix, unless it is empty: a bucket may hold more than MLCD's."""
    if not prefix:
        raise ValueError("what is to be cleared must begin with something")
    return prefix
