"""A storage that may be asked so often and no more: where requests are paid for, a function keeps to its part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages import Storage


class TooManyRequests(BackendError):
    """A function has made all the requests that it may."""


@dataclass(frozen=True)
class Counted:
    """A storage behind a count; those that average by themselves are paid for by time, and need none."""

    storage: Storage
    most: int

    @property
    def requests(self) -> int:
        """How often it was asked."""
        return self.storage.requests

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key."""
        self._counted().put(key, value)

    def get(self, key: str) -> bytes | None:
        """What is under that key; None if nothing is."""
        return self._counted().get(key)

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these."""
        self._counted().delete(keys)

    def clear(self, prefix: str) -> None:
        """Forget everything whose key begins so."""
        self._counted().clear(prefix)

    def close(self) -> None:
        """Let go of the connection."""
        self.storage.close()

    def _counted(self) -> Storage:
        if self.storage.requests >= self.most:
            raise TooManyRequests(f"it has made the {self.most:,} requests that it may")
        return self.storage
