"""A model in ONNX Runtime on the CPU, and dynamic batching: requests that wait at the same time share a forward pass.

A pass starts when `batch` rows are waiting, or the oldest request has waited for `max_wait_s`; meanwhile the next batch
is collected. Requests are joined along the first axis if their other axes are equal; nothing is padded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mlcd.clouds.tensors import Port, Tensors
from mlcd.core.errors import UserError
from mlcd.planners.serve.operators.onnx_session import open_session

DATATYPES = {"float": "FP32", "double": "FP64", "float16": "FP16", "bool": "BOOL", "string": "BYTES"}
DATATYPES |= {f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Type names of ONNX Runtime -> type names of the Open Inference Protocol."""


class Runs(Protocol):
    """The interface of a model that a server needs."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def run(self, inputs: Tensors) -> dict[str, np.ndarray[Any, Any]]:
        """Run one forward pass."""
        ...


class Model:
    """A model in memory; `threads` compute one pass."""

    def __init__(self, path: Path, name: str, threads: int) -> None:
        # Threads that spin between two passes would block the core that reads the next request.
        self._session = open_session(path, threads, stop_spinning=True)
        self.name = name
        self.inputs = tuple(_port(each) for each in self._session.get_inputs())
        self.outputs = tuple(_port(each) for each in self._session.get_outputs())

    def run(self, inputs: Tensors) -> dict[str, np.ndarray[Any, Any]]:
        """Run one forward pass."""
        names = [each.name for each in self.outputs]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))


def metadata(model: Runs) -> dict[str, Any]:
    """The model's description in the protocol."""
    described = {
        what: [{"name": port.name, "datatype": port.datatype, "shape": list(port.shape)} for port in ports]
        for what, ports in (("inputs", model.inputs), ("outputs", model.outputs))
    }
    return {"name": model.name, "platform": "onnxruntime_onnx", **described}


def _port(node: Any) -> Port:
    inner = str(node.type).removeprefix("tensor(").removesuffix(")")
    if inner not in DATATYPES:
        raise UserError(f"'{node.name}' is a {node.type}: only tensors of numbers and texts can be served")
    shape = tuple(side if isinstance(side, int) and side >= 0 else -1 for side in node.shape)
    return Port(node.name, DATATYPES[inner], shape)


Answer = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class _Request:
    """A request that waits for its answer."""

    inputs: Tensors
    rows: int
    shape_key: object
    since_s: float
    answer: asyncio.Future[Answer]


@dataclass
class Batcher:
    """Answers requests in batches; create, use and close it inside an event loop."""

    model: Runs
    batch: int
    max_wait_s: float
    _queue: deque[_Request] = field(default_factory=deque)
    _new: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._can_join = all(port.shape and port.shape[0] == -1 for port in self.model.inputs)
        self._pool = ThreadPoolExecutor(1, "model")
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def answer(self, inputs: Tensors) -> Answer:
        """The model's answer. ValueError if the inputs do not fit the model."""
        self._check(inputs)
        loop = asyncio.get_running_loop()
        rows = next(iter(inputs.values())).shape[0] if self._can_join else self.batch
        shape_key = tuple((name, inputs[name].shape[1:]) for name in sorted(inputs))
        waiting = _Request(inputs, rows, shape_key, loop.time(), loop.create_future())
        self._queue.append(waiting)
        self._new.set()
        return await waiting.answer

    async def close(self) -> None:
        """Stop, and cancel waiting requests."""
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        self._pool.shutdown()
        for waiting in self._queue:
            waiting.answer.cancel()

    def _check(self, inputs: Tensors) -> None:
        ports = {port.name: port for port in self.model.inputs}
        if set(inputs) != set(ports):
            raise ValueError(f"the inputs are {', '.join(sorted(ports))}, not {', '.join(sorted(inputs)) or 'none'}")
        for name, tensor in inputs.items():
            if (why := ports[name].mismatch(tensor)) is not None:
                raise ValueError(why)
        if self._can_join and len({tensor.shape[0] for tensor in inputs.values()}) > 1:
            raise ValueError("the inputs differ in their first axis, which counts the samples of a request")

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            taken = [each for each in await self._gather() if not each.answer.cancelled()]
            if not taken:
                continue
            answers = await loop.run_in_executor(self._pool, self._answers, [each.inputs for each in taken])
            for waiting, answer in zip(taken, answers, strict=True):
                if waiting.answer.cancelled():  # the client has disconnected
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    async def _gather(self) -> list[_Request]:
        """Wait for the next batch, and take it off the queue."""
        while True:
            self._new.clear()
            if self._queue:
                first = self._queue[0]
                left_s = first.since_s + self.max_wait_s - asyncio.get_running_loop().time()
                rows = sum(each.rows for each in self._queue if each.shape_key == first.shape_key)
                if left_s <= 0 or rows >= self.batch:
                    return self._take(first)
            else:
                left_s = None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._new.wait(), left_s)

    def _take(self, first: _Request) -> list[_Request]:
        """Take requests with the first one's shape, in order, while they fit; one larger than a batch runs alone."""
        taken: list[_Request] = []
        rows = 0
        for each in list(self._queue):
            if each.shape_key != first.shape_key or (taken and rows + each.rows > self.batch):
                continue
            taken.append(each)
            rows += each.rows
            if rows >= self.batch:
                break
        chosen = {id(each) for each in taken}
        self._queue = deque(each for each in self._queue if id(each) not in chosen)
        return taken

    def _answers(self, requests: Sequence[Tensors]) -> list[Answer | Exception]:
        """The answers, computed in a thread. If a batch fails, its requests are retried one by one."""
        try:
            return [*self._run_batch(requests)]
        except Exception as error:  # an error of the model is the answer to its request
            return [error] if len(requests) == 1 else [self._answers([request])[0] for request in requests]

    def _run_batch(self, requests: Sequence[Tensors]) -> list[Answer]:
        if len(requests) == 1:
            return [self.model.run(requests[0])]
        joined = {name: np.concatenate([request[name] for request in requests]) for name in requests[0]}
        ends = np.cumsum([next(iter(request.values())).shape[0] for request in requests])
        whole = self.model.run(joined)
        for name, tensor in whole.items():
            if tensor.ndim == 0 or tensor.shape[0] != ends[-1]:
                raise ValueError(f"output '{name}' has no row for each sample: it cannot be batched")
        parts = {name: np.split(tensor, ends[:-1]) for name, tensor in whole.items()}
        return [{name: parts[name][i] for name in whole} for i in range(len(requests))]
