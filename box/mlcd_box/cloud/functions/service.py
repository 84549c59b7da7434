"""What Lambda's API does in one region.

A call takes a warm environment or waits for a cold one. A call of type Event is queued: it is tried again when it was
throttled, and twice when it failed, each time billed anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from mlcd_box.cloud.functions.archives import check_unpacked
from mlcd_box.cloud.functions.pool import Answer, Environment, Pool
from mlcd_box.cloud.functions.records import Archive, Function, Layer
from mlcd_box.cloud.functions.rules import RETRIES_AFTER_S, Refused, back_off_s, billed_ms, check_payload, check_size
from mlcd_box.events import EventLog

Start = Callable[[Function], Environment]
"""Starts an environment and loads the function's code."""
Later = Callable[[float, Callable[[], None]], None]
"""Does something after so many seconds."""


class InitFailed(Exception):
    """The code could not be loaded: what is answered, and how long it took."""

    def __init__(self, answer: Answer, init_s: float) -> None:
        super().__init__(answer.error)
        self.answer, self.init_s = answer, init_s


def later(seconds: float, do: Callable[[], None]) -> None:
    """In a thread of its own."""
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
    """Whether this request to call a function is refused by rule."""
    later: Later = later
    now_s: Callable[[], float] = time.time
    functions: dict[str, Function] = field(default_factory=dict)
    layers: dict[str, list[Layer]] = field(default_factory=dict)
    queued: int = 0
    """Calls that wait: they were throttled, or failed and are tried again."""

    def create(self, function: Function) -> Function:
        """Create a function."""
        if function.name in self.functions:
            raise Refused("ResourceConflictException", f"Function already exist: {function.name}")
        return self._put(function)

    def find(self, name: str) -> Function:
        """By its name or its ARN."""
        short = name.split(":function:")[-1].split(":")[0]
        if short not in self.functions:
            arn = f"arn:aws:lambda:{self.region}:123456789012:function:{short}"
            raise Refused("ResourceNotFoundException", f"Function not found: {arn}")
        return self.functions[short]

    def update(self, name: str, **changed: Any) -> Function:
        """Change a function; its warm environments are of no more use."""
        return self._put(replace(self.find(name), **changed, revision=str(uuid4())))

    def reserve(self, name: str, reserved: int | None) -> Function:
        """Keep so many calls at once for this function; None: none."""
        return self._put(replace(self.find(name), reserved=reserved))

    def set_retries(self, name: str, retries: int) -> Function:
        """Try queued calls that failed so often again."""
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
        """By the ARN of its version."""
        for each in (layer for versions in self.layers.values() for layer in versions):
            if arn == f"{each.arn}:{each.version}":
                return each
        raise Refused("InvalidParameterValueException", f"Layer version {arn} does not exist.")

    def remove_layer(self, name: str, version: int) -> None:
        """Functions that have it keep it."""
        kept = [each for each in self.layers.get(name, []) if each.version != version]
        self.layers[name] = kept
        if not kept:
            del self.layers[name]

    def call(self, name: str, payload: bytes) -> Answer:
        """Call a function and wait for its answer."""
        function = self._callable(name, payload, "RequestResponse")
        return self._run(function, str(uuid4()), payload)

    def queue(self, name: str, payload: bytes) -> str:
        """Call a function and do not wait; the id of the request."""
        function, request_id = self._callable(name, payload, "Event"), str(uuid4())
        self._wait(0.0, lambda: self._work_off(function.name, request_id, payload, 0, 0))
        return request_id

    def _work_off(self, name: str, request_id: str, payload: bytes, throttled: int, failed: int) -> None:
        """Run a queued call; or queue it again."""
        if name not in self.functions:
            return
        try:
            answer = self._run(self.functions[name], request_id, payload)
        except Refused:
            again_s, throttled = back_off_s(throttled + 1), throttled + 1
        else:
            if not answer.error or name not in self.functions or failed >= self.functions[name].retries:
                return
            again_s, failed = RETRIES_AFTER_S[failed], failed + 1
        self._wait(again_s, lambda: self._work_off(name, request_id, payload, throttled, failed))

    def _wait(self, seconds: float, do: Callable[[], None]) -> None:
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
            raise Refused("TooManyRequestsException", "Rate exceeded (CallerRateLimitExceeded)")
        if function.is_pending(self.now_s()):
            words = "The operation cannot be performed at this time."
            raise Refused("ResourceConflictException", f"{words} The function is currently in the state: Pending")
        return function

    def _run(self, function: Function, request_id: str, payload: bytes) -> Answer:
        """One attempt, billed."""
        reserved = {each.name: each.reserved for each in self.functions.values() if each.reserved is not None}
        try:
            with self.pool.slot(function, reserved):
                return self._billed(function, request_id, payload)
        except Refused:
            self.events.write("throttled", function=function.name, request=request_id)
            raise

    def _billed(self, function: Function, request_id: str, payload: bytes) -> Answer:
        warm = self.pool.take(function)
        try:
            environment = warm if warm is not None else self._cold(function)
        except InitFailed as failure:
            self._note(function, request_id, failure.init_s, 0.0, failure.answer)
            return failure.answer
        began_s = self.now_s()
        answer = environment.call(payload, request_id, function.timeout_s)
        ran_s = min(self.now_s() - began_s, float(function.timeout_s))
        self._note(function, request_id, 0.0 if warm is not None else environment.init_s, ran_s, answer)
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

    def _note(self, function: Function, request_id: str, init_s: float, ran_s: float, answer: Answer) -> None:
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
