"""The interface of a storage through which functions exchange data, its errors, and the vectors that are exchanged.

Storage           stores bytes by key: S3, DynamoDB, Redis, and the parameter server
Averaging         a storage that averages by itself: the parameter server
RetryingStorage   base class of the clients: retries for some seconds while a server does not answer
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mlcd.core.clock import Clock, WallClock
from mlcd.core.errors import BackendError

T = TypeVar("T")
Vector = NDArray[np.float32]
WIRE = np.dtype("<f4")
"""Vectors are little-endian on every machine."""
RETRY_S = 10.0
"""How long requests are retried while a server does not answer, such as during a restart."""
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.05, 1.0


class StorageError(BackendError):
    """A request failed, and a retry would not help."""


class StorageGone(StorageError):
    """The storage does not answer any more, or has lost its data: start over, in a new group."""


class TooManyRequests(BackendError):
    """A function has used up its quota of requests."""


class ErrorKind(Enum):
    """The meaning of an error of a storage's library."""

    TRANSIENT = "a retry may help"
    LOST = "the data are lost"
    REFUSED = "a retry would not help"
    OTHER = "not an error of the storage"


class Storage(Protocol):
    """Stores bytes by key. Not thread-safe; all operations are idempotent."""

    requests: int
    """The number of requests, including those that found nothing."""
    puts: int
    """Of these, those that are billed as a put."""

    def put(self, key: str, value: bytes) -> None:
        """Store a value, replacing an existing one."""

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys, whether or not they exist."""

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix; an empty prefix is refused, since it would empty the storage."""

    def close(self) -> None:
        """Close the connection."""


@runtime_checkable
class Averaging(Protocol):
    """A storage that averages by itself."""

    def average(
        self, group: str, step: int, rank: int, functions: int, vector: Vector, timeout_s: float
    ) -> Vector | tuple[int, ...]:
        """The mean over all ranks; after `timeout_s` without it, the missing ranks."""


class RetryingStorage:
    """Retries requests with exponential backoff while a server does not answer, for `retry_s`.

    `most_requests`: where requests are billed, each function has its quota; None for no limit.
    """

    def __init__(self, name: str, url: str, retry_s: float, clock: Clock | None = None) -> None:
        self.name, self.url, self.retry_s = name, url, retry_s
        self.clock: Clock = clock or WallClock(datetime.now(UTC))
        self.requests = self.puts = 0
        self.most_requests: int | None = None

    def error_kind(self, error: Exception) -> ErrorKind:
        """Classify an error; each storage knows those of its library."""
        return ErrorKind.TRANSIENT if isinstance(error, OSError) else ErrorKind.OTHER

    def request(self, send: Callable[[], T]) -> T:
        """Send a request and return its result; transient errors are retried."""
        began_s, backoff_s = self.clock.elapsed_s(), FIRST_BACKOFF_S
        while True:
            if self.most_requests is not None and self.requests >= self.most_requests:
                raise TooManyRequests(f"it has made the {self.most_requests:,} requests that it may")
            self.requests += 1
            try:
                return send()
            except Exception as error:  # of any library: `error_kind` knows the storage's own; others are raised
                kind, why = self.error_kind(error), one_line(error)
                if kind is ErrorKind.OTHER:
                    raise
                if kind is ErrorKind.REFUSED:
                    raise StorageError(f"{self.name} at {self.url}: {why}") from error
                if kind is ErrorKind.LOST:
                    raise self.gone_error(f"has lost its data ({why})") from error
                waited_s = self.clock.elapsed_s() - began_s
                if waited_s + backoff_s > self.retry_s:
                    raise self.gone_error(f"has not answered for {waited_s:.0f} s ({why})") from error
            self.clock.wait(backoff_s)
            backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)

    def gone_error(self, why: str) -> StorageGone:
        """An error with the storage's name and address."""
        return StorageGone(f"{self.name} at {self.url} {why}")


def one_line(error: BaseException) -> str:
    """The first line of an error's message; its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def checked_prefix(prefix: str) -> str:
    """The prefix, unless it is empty: a bucket may have other objects than MLCD's."""
    if not prefix:
        raise ValueError("an empty prefix would delete everything")
    return prefix


def to_bytes(vector: Vector) -> bytes:
    """Encode a vector."""
    return np.ascontiguousarray(vector, WIRE).tobytes()


def from_bytes(data: bytes | bytearray) -> Vector:
    """Decode a vector, as a writable copy."""
    return np.frombuffer(data, WIRE).astype(np.float32)


def mean(vectors: Iterable[Vector]) -> Vector:
    """Their mean, summed in float64 in the given order: the same order gives the same mean, bit by bit."""
    each = iter(vectors)
    total = next(each).astype(np.float64)
    count = 1
    for vector in each:
        total += vector
        count += 1
    return (total / count).astype(np.float32)
