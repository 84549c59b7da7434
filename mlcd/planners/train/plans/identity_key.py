"""Things as keys of a cache by what they are, not by what they equal: comparing thousands of candidates takes long."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class IdentityKey(Generic[T]):
    """Equal if it is of the same object, which is kept alive so that no other takes its place."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
