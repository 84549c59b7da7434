"""A storage in this process's memory, shared by any number of clients, for quick tests."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.clock import VirtualClock


class InMemory:
    """One client of a shared dict; takes some time for each request where it is given a clock and a law."""

    def __init__(
        self,
        objects: dict[str, bytes],
        clock: VirtualClock | None = None,
        latency_s: float = 0.0,
        mb_per_s: float = float("inf"),
    ) -> None:
        self.objects, self.clock, self.latency_s, self.mb_per_s = objects, clock, latency_s, mb_per_s
        self.requests = 0

    def _ask(self, size: int = 0) -> None:
        self.requests += 1
        if self.clock is not None:
            self.clock.wait(self.latency_s + size / 1e6 / self.mb_per_s)

    def put(self, key: str, value: bytes) -> None:
        self._ask(len(value))
        self.objects[key] = value

    def get(self, key: str) -> bytes | None:
        found = self.objects.get(key)
        self._ask(len(found or b""))
        return found

    def delete(self, keys: Sequence[str]) -> None:
        self._ask()
        for key in keys:
            self.objects.pop(key, None)

    def clear(self, prefix: str) -> None:
        self._ask()
        for key in [key for key in self.objects if key.startswith(prefix)]:
            del self.objects[key]

    def close(self) -> None:
        pass
