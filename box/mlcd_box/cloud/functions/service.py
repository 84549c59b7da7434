"""Lambda in one region: creates, changes and calls functions.

A call takes a warm environment or waits for a cold start. A call of type Event is queued: it is retried after it was
throttled, and twice after it failed. Each attempt is billed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from mlcd_box.cloud.functions.archives import check_unpacked
from mlcd_box.cloud.functions.pool import CallResult, Environment, Pool
from mlcd_box.cloud.functions.records import Archive, Function, Layer
from mlcd_box.cloud.functions.rules import RETRIES_AFTER_S, ApiError, back_off_s, billed_ms, check_payload, check_size
from mlcd_box.events import EventLog

Start = Callable[[Function], Environment]
"""Starts an environment and loads the function's code."""
Later = Callable[[float, Callable[[], None]], None]
"""Calls a function after so many seconds."""


class InitFailed(Exception):
    """The code could not be loaded. `answer`: the result of the call; `init_s`: how long it took."""

    def __init__(self, answer: CallResult, init_s: float) -> None:
        super().__init__(answer.error)
        self.answer, self.init_s = answer, init_s


def later(seconds: float, do: Callable[[], None]) -> None:
    """Call a function after so many seconds, in its own thread."""
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


@dataclass
class Service:
    """The functions and layers of one region."""

    region: str
    start: Start
    pool: Pool
    events: EventLog
    is_throttled: Callable[[], bool] = lambda: False
    """Whether to refuse this request to call a function, by an injected fault."""
    later: Later = later
    now_s: Callable[[], float] = time.time
    functions: dict[str, Function] = field(default_factory=dict)
    layers: dict[str, list[Layer]] = field(default_factory=dict)
    queued: int = 0
    """The number of calls that wait for a retry, because they were throttled or failed."""

    def create(self, function: Function) -> Function:
        """Create a function."""
        if function.name in self.functions:
            raise ApiError("ResourceConflictException", f"Function already exist: {function.name}")
        return self._put(function)

    def find(self, name: str) -> Function:
        """Find a function by its name or its ARN."""
        short = name.split(":function:")[-1].split(":")[0]
        if short not in self.functions:
            arn = f"arn:aws:lambda:{self.region}:123456789012:function:{short}"
            raise ApiError("ResourceNotFoundException", f"Function not found: {arn}")
        return self.functions[short]

    def update(self, name: str, **changed: Any) -> Function:
        """Change a function. Its warm environments are not used again."""
        return self._put(replace(self.find(name), **changed, revision=str(uuid4())))

    def reserve(self, name: str, reserved: int | None) -> Function:
        """Set the reserved concurrency of a function; None removes it."""
        return self._put(replace(self.find(name), reserved=reserved))

    def set_retries(self, name: str, retries: int) -> Function:
        """Set how often a failed queued call is retried."""
        return self._put(replace(self.find(name), retries=retries))

    def delete(self, name: str) -> None:
        """Delete a function, and its environments."""
        del self.functions[self.find(name).name]
        self._end_idle()

    def publish(self, name: str, archive: Archive, description: str, runtimes: Iterable[str]) -> Layer:
        """Add a version of a layer."""
        version = 1 + max((each.version for each in self.layers.get(name, [])), default=0)
        layer = Layer(name, version, self.region, archive, description, tuple(runtimes), self.now_s())
        self.layers.setdefault(name, []).append(layer)
        return layer

    def layer(self, arn: str) -> Layer:
        """Find a version of a layer by its ARN."""
        for each in (layer for versions in self.layers.values() for layer in versions):
            if arn == f"{each.arn}:{each.version}":
                return each
        raise ApiError("InvalidParameterValueException", f"Layer version {arn} does not exist.")

    def remove_layer(self, name: str, version: int) -> None:
        """Remove a version of a layer. Functions that use it keep it."""
        kept = [each for each in self.layers.get(name, []) if each.version != version]
        self.layers[name] = kept
        if not kept:
            del self.layers[name]

    def call(self, name: str, payload: bytes) -> CallResult:
        """Call a function and wait for its answer."""
        function = self._callable(name, payload, "RequestResponse")
        return self._run(function, str(uuid4()), payload)

    def queue(self, name: str, payload: bytes) -> str:
        """Call a function without waiting for it; returns the id of the request."""
        function, request_id = self._callable(name, payload, "Event"), str(uuid4())
        self._enqueue(0.0, lambda: self._run_queued(function.name, request_id, payload, 0, 0))
        return request_id

    def _run_queued(self, name: str, request_id: str, payload: bytes, throttled: int, failed: int) -> None:
        """Run a queued call, and queue it again if it was throttled or failed."""
        if name not in self.functions:
            return
        try:
            answer = self._run(self.functions[name], request_id, payload)
        except ApiError:
            retry_after_s, throttled = back_off_s(throttled + 1), throttled + 1
        else:
            if not answer.error or name not in self.functions or failed >= self.functions[name].retries:
                return
            retry_after_s, failed = RETRIES_AFTER_S[failed], failed + 1
        self._enqueue(retry_after_s, lambda: self._run_queued(name, request_id, payload, throttled, failed))

    def _enqueue(self, seconds: float, do: Callable[[], None]) -> None:
        self.queued += 1

        def done() -> None:
            self.queued -= 1
            do()

        self.later(seconds, done)

    def _callable(self, name: str, payload: bytes, kind: str) -> Function:
        function = self.find(name)
        check_payload(payload, kind)
        if self.is_throttled():
            self.events.write("throttled", function=function.name, request="")
            raise ApiError("TooManyRequestsException", "Rate exceeded (CallerRateLimitExceeded)")
        if function.is_pending(self.now_s()):
            words = "The operation cannot be performed at this time."
            raise ApiError("ResourceConflictException", f"{words} The function is currently in the state: Pending")
        return function

    def _run(self, function: Function, request_id: str, payload: bytes) -> CallResult:
        """One billed attempt of a call."""
        reserved = {each.name: each.reserved for each in self.functions.values() if each.reserved is not None}
        try:
            with self.pool.slot(function, reserved):
                return self._billed(function, request_id, payload)
        except ApiError:
            self.events.write("throttled", function=function.name, request=request_id)
            raise

    def _billed(self, function: Function, request_id: str, payload: bytes) -> CallResult:
        warm = self.pool.take(function)
        try:
            environment = warm if warm is not None else self._cold(function)
        except InitFailed as failure:
            self._record(function, request_id, failure.init_s, 0.0, failure.answer)
            return failure.answer
        began_s = self.now_s()
        answer = environment.call(payload, request_id, function.timeout_s)
        ran_s = min(self.now_s() - began_s, float(function.timeout_s))
        self._record(function, request_id, 0.0 if warm is not None else environment.init_s, ran_s, answer)
        if answer.is_alive and function.revision in self._revisions():
            self.pool.give_back(function, environment)
        else:
            environment.end()
        self._end_idle()
        return answer

    def _cold(self, function: Function) -> Environment:
        environment = self.start(function)
        about = {"id": environment.id, "function": function.name, "memory_mb": function.memory_mb}
        self.events.write("cold_start", **about, init_ms=round(1_000 * environment.init_s, 1))
        return environment

    def _record(self, function: Function, request_id: str, init_s: float, ran_s: float, answer: CallResult) -> None:
        about: Mapping[str, Any] = {"function": function.name, "memory_mb": function.memory_mb, "request": request_id}
        took = {"init_ms": round(1_000 * init_s, 3), "ran_ms": round(1_000 * ran_s, 3)}
        self.events.write("called", **about, **took, billed_ms=billed_ms(init_s, ran_s), error=answer.error)

    def _put(self, function: Function) -> Function:
        check_size(function.memory_mb, function.timeout_s)
        check_unpacked(function.code.unpacked + sum(each.archive.unpacked for each in function.layers))
        self.functions[function.name] = function
        self._end_idle()
        return function

    def _revisions(self) -> set[str]:
        return {each.revision for each in self.functions.values()}

    def _end_idle(self) -> None:
        self.pool.end_idle(self._revisions())
