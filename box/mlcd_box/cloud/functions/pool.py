"""How many calls run at once, and the environments that are warm."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mlcd_box.cloud.functions.records import Function
from mlcd_box.cloud.functions.rules import KEPT_WARM_S, Refused


@dataclass(frozen=True)
class Answer:
    """What a call gave: its JSON, the error's type or nothing, and whether its environment is still there."""

    payload: bytes
    error: str = ""
    is_alive: bool = True


class Environment(Protocol):
    """An execution environment. `init_s`: how long its code took to load."""

    id: str
    init_s: float

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> Answer:
        """Run one call to its end."""

    def end(self) -> None:
        """End it."""


@dataclass
class Pool:
    """Of a region. `most`: calls at once, asked at every call, since a rule may change it."""

    most: Callable[[], int]
    now_s: Callable[[], float]
    _running: Counter[str] = field(default_factory=Counter)
    _warm: dict[str, list[tuple[float, Environment]]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def running(self) -> int:
        """Calls that run now."""
        return self._running.total()

    @contextmanager
    def slot(self, function: Function, reserved: Mapping[str, int]) -> Iterator[None]:
        """A place for one call. `reserved`: how many calls each function keeps for itself."""
        with self._lock:
            if function.name in reserved:
                is_full = self._running[function.name] >= reserved[function.name]
            else:
                shared = sum(running for name, running in self._running.items() if name not in reserved)
                is_full = shared >= self.most() - sum(reserved.values())
            if is_full:
                raise Refused("TooManyRequestsException", "Rate Exceeded. (ConcurrentInvocationLimitExceeded)")
            self._running[function.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[function.name] -= 1

    def take(self, function: Function) -> Environment | None:
        """The environment that was used last, if one is warm."""
        with self._lock:
            warm = self._warm[function.revision]
            return warm.pop()[1] if warm else None

    def give_back(self, function: Function, environment: Environment) -> None:
        """Keep it warm."""
        with self._lock:
            self._warm[function.revision].append((self.now_s(), environment))

    def end_idle(self, revisions: set[str]) -> None:
        """End environments of functions that are no more, and those that nobody has called for long."""
        with self._lock:
            ended: list[Environment] = []
            for revision, kept in self._warm.items():
                least_s = self.now_s() - KEPT_WARM_S if revision in revisions else float("inf")
                ended += [each for since_s, each in kept if since_s < least_s]
                self._warm[revision] = [pair for pair in kept if pair[0] >= least_s]
        for environment in ended:
            environment.end()
