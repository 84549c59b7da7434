"""The warm environments of a region, and its limit of calls at once."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mlcd_box.cloud.functions.records import Function
from mlcd_box.cloud.functions.rules import KEPT_WARM_S, ApiError


@dataclass(frozen=True)
class CallResult:
    """The result of a call: JSON; the type of an error, if there was one; whether the environment still exists."""

    payload: bytes
    error: str = ""
    is_alive: bool = True


class Environment(Protocol):
    """An execution environment. `init_s`: how long it took to load its code."""

    id: str
    init_s: float

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> CallResult:
        """Run one call to its end."""

    def end(self) -> None:
        """End the environment."""


@dataclass
class Pool:
    """The environments of a region. `most`: returns the limit of calls at once; a fault rule may change it any time."""

    most: Callable[[], int]
    now_s: Callable[[], float]
    _running: Counter[str] = field(default_factory=Counter)
    _warm: dict[str, list[tuple[float, Environment]]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def running(self) -> int:
        """The number of calls that run now."""
        return self._running.total()

    @contextmanager
    def slot(self, function: Function, reserved: Mapping[str, int]) -> Iterator[None]:
        """Reserve a slot for one call; `ApiError` if there is none. `reserved`: reserved concurrency by function."""
        with self._lock:
            if function.name in reserved:
                is_full = self._running[function.name] >= reserved[function.name]
            else:
                shared = sum(running for name, running in self._running.items() if name not in reserved)
                is_full = shared >= self.most() - sum(reserved.values())
            if is_full:
                raise ApiError("TooManyRequestsException", "Rate Exceeded. (ConcurrentInvocationLimitExceeded)")
            self._running[function.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[function.name] -= 1

    def take(self, function: Function) -> Environment | None:
        """Take the warm environment that was used last; None if there is none."""
        with self._lock:
            warm = self._warm[function.revision]
            return warm.pop()[1] if warm else None

    def give_back(self, function: Function, environment: Environment) -> None:
        """Keep an environment warm for the next call."""
        with self._lock:
            self._warm[function.revision].append((self.now_s(), environment))

    def end_idle(self, revisions: set[str]) -> None:
        """End the environments of deleted or changed functions, and those that were not used for long."""
        with self._lock:
            ended: list[Environment] = []
            for revision, kept in self._warm.items():
                least_s = self.now_s() - KEPT_WARM_S if revision in revisions else float("inf")
                ended += [each for since_s, each in kept if since_s < least_s]
                self._warm[revision] = [pair for pair in kept if pair[0] >= least_s]
        for environment in ended:
            environment.end()
