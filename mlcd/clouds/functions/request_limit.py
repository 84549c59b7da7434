"""A storage with a limit on requests: where requests are billed, each function has its quota."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages import Storage


class TooManyRequests(BackendError):
    """A function has used up its quota of requests."""


@dataclass(frozen=True)
class Counted:
    """A storage that refuses requests beyond the limit. Storages that average by themselves are billed by time."""

    storage: Storage
    most: int

    @property
    def requests(self) -> int:
        """Requests so far."""
        return self.storage.requests

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._checked().put(key, value)

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""
        return self._checked().get(key)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        self._checked().delete(keys)

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix."""
        self._checked().clear(prefix)

    def close(self) -> None:
        """Close the connection."""
        self.storage.close()

    def _checked(self) -> Storage:
        if self.storage.requests >= self.most:
            raise TooManyRequests(f"it has made the {self.most:,} requests that it may")
        return self.storage
