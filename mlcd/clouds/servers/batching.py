"""Dynamic batching: requests that wait at the same time are answered in one pass of the model.

A pass starts once `batch` rows wait, or the oldest request has waited for `max_wait_s`. Requests are joined along the
first axis, and only with those of the same shape otherwise: nothing is padded. While one runs, the next batch gathers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlcd.clouds.servers.model import Runs
from mlcd.clouds.tensors import Tensors

Answer = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class _Waiting:
    """A request that has not been answered."""

    inputs: Tensors
    rows: int
    like: object
    since_s: float
    answer: asyncio.Future[Answer]


@dataclass
class Batcher:
    """Answers requests of one model; to be made, used and closed inside an event loop."""

    model: Runs
    batch: int
    max_wait_s: float
    _queue: deque[_Waiting] = field(default_factory=deque)
    _new: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._joins = all(port.shape and port.shape[0] == -1 for port in self.model.inputs)
        self._pool = ThreadPoolExecutor(1, "model")
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def ask(self, inputs: Tensors) -> Answer:
        """The model's answer. ValueError if these are no inputs of it."""
        self._check(inputs)
        loop = asyncio.get_running_loop()
        rows = next(iter(inputs.values())).shape[0] if self._joins else self.batch
        like = tuple((name, inputs[name].shape[1:]) for name in sorted(inputs))
        waiting = _Waiting(inputs, rows, like, loop.time(), loop.create_future())
        self._queue.append(waiting)
        self._new.set()
        return await waiting.answer

    async def close(self) -> None:
        """Answer nothing any more."""
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
            if (why := ports[name].refuses(tensor)) is not None:
                raise ValueError(why)
        if self._joins and len({tensor.shape[0] for tensor in inputs.values()}) > 1:
            raise ValueError("the inputs differ in their first axis, which counts the samples of a request")

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            taken = [each for each in await self._gather() if not each.answer.cancelled()]
            if not taken:
                continue
            answers = await loop.run_in_executor(self._pool, self._answers, [each.inputs for each in taken])
            for waiting, answer in zip(taken, answers, strict=True):
                if waiting.answer.cancelled():  # whoever asked has hung up
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    async def _gather(self) -> list[_Waiting]:
        """The next batch, taken off the queue."""
        while True:
            self._new.clear()
            if self._queue:
                first = self._queue[0]
                left_s = first.since_s + self.max_wait_s - asyncio.get_running_loop().time()
                if left_s <= 0 or sum(each.rows for each in self._queue if each.like == first.like) >= self.batch:
                    return self._take(first)
            else:
                left_s = None
            try:
                await asyncio.wait_for(self._new.wait(), left_s)
            except TimeoutError:
                continue

    def _take(self, first: _Waiting) -> list[_Waiting]:
        """Those like the first, in order, while they fit; a request larger than a batch goes alone."""
        taken: list[_Waiting] = []
        rows = 0
        for each in list(self._queue):
            if each.like != first.like or (taken and rows + each.rows > self.batch):
                continue
            taken.append(each)
            rows += each.rows
            if rows >= self.batch:
                break
        chosen = {id(each) for each in taken}
        self._queue = deque(each for each in self._queue if id(each) not in chosen)
        return taken

    def _answers(self, requests: Sequence[Tensors]) -> list[Answer | Exception]:
        """Of each request, in a thread of its own. One that fails does not take the others of its batch with it."""
        try:
            return [*self._together(requests)]
        except Exception as error:  # whatever the model raises is the answer of its request, not the server's end
            return [error] if len(requests) == 1 else [self._answers([request])[0] for request in requests]

    def _together(self, requests: Sequence[Tensors]) -> list[Answer]:
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
