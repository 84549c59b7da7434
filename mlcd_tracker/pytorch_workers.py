"""The squared norms of several workers' gradients, before and after DistributedDataParallel averages them.

Hooks on the parameters read a worker's own gradient once it is complete, before it is averaged; a callback at the end
of the backward pass reads the average. They exist only in the steps that measure. A communication hook could read the
same, but it would slow down every step: with one, DistributedDataParallel no longer divides while it copies.

The squared norms and rank 0's instructions are exchanged in a small all-reduce after such a step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import Variable
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker
from mlcd_tracker.agreement import ExchangeResult, Instructions
from mlcd_tracker.pytorch_norms import factor, norm, sum_of_squares


class Workers:
    """The comparison between the workers of a DistributedDataParallel network."""

    def __init__(self, net: DistributedDataParallel, scaler: Any = None) -> None:
        self._net, self._scaler, self._group = net, scaler, net.process_group
        self._parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
        self._workers, self._first = dist.get_world_size(self._group), dist.get_rank(self._group) == 0
        self._exchanging = self._measures = False
        self._hooks: list[Any] = []
        self._answer: Callable[[], list[float]] | None = None
        self._steps_ago = 0
        # A GPU runs asynchronously: waiting for its answer in the same step would leave it idle.
        self._lag = 0 if net.device.type == "cpu" else 1
        self.spread = 1 + self._lag

    @property
    def idle(self) -> bool:
        """Whether no exchange is in progress."""
        return not self._exchanging and self._answer is None

    def begin(self, measures: bool, instructions: Instructions) -> None:
        """Prepare an exchange after the coming step, which measures if `measures`."""
        self._exchanging, self._measures, self._instructions = True, measures, instructions
        self._own: dict[int, torch.Tensor] = {}
        self._mean: list[torch.Tensor] = []
        self._waits, self._averages = False, 0
        self._scale = factor(None, self._net.device)
        if measures:
            for i, parameter in enumerate(self._parameters):
                self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(self._record_own, i)))

    def end(self, samples: float) -> None:
        """End a step over so many samples."""
        if self._exchanging:
            for hook in self._hooks:
                hook.remove()
            self._hooks, self._exchanging = [], False
            self._answer, self._samples, self._steps_ago = self._exchange(), samples, 0
        else:
            self._steps_ago += 1

    def result(self) -> ExchangeResult | None:
        """The result of the exchange; None if there was none, or if it is still in progress."""
        if self._answer is None or self._steps_ago < self._lag:
            return None
        local, leave, wait, measures, noise, mean, scale = self._answer()
        self._answer = None
        instructions = Instructions(leave > 0, round(wait), measures > 0, noise)
        if not self._measures or self._averages != 1:  # a second average would average averages
            return ExchangeResult(instructions, None, self._steps_ago)
        local, mean = local / self._workers / scale**2, mean / scale**2
        return ExchangeResult(
            instructions, (local, mean, even_batch(self._samples, self._workers), self._workers), self._steps_ago
        )

    def _record_own(self, i: int, parameter: nn.Parameter) -> None:
        """Record this worker's gradient as accumulated so far; after the last pass it is complete."""
        assert parameter.grad is not None
        self._own[i] = norm(parameter.grad)
        if self._first and self._net.require_backward_grad_sync and not self._waits:
            self._waits = True
            self._scale = factor(self._scaler, parameter.device)  # the script may change it before the end of the step
            # A callback of a callback runs after DistributedDataParallel's own, which waits for the averages.
            after = Variable._execution_engine.queue_callback
            after(lambda: after(self._record_mean))

    def _record_mean(self) -> None:
        self._mean = [norm(parameter.grad) for parameter in self._parameters if parameter.grad is not None]
        self._waits, self._averages = False, self._averages + 1

    def _exchange(self) -> Callable[[], list[float]]:
        """Start a small all-reduce of all workers' |g_k|^2 and rank 0's instructions; returns how to read the sums."""
        instructions, message = self._instructions, [0.0, float(mlcd_tracker.leaving()), 0.0, 0.0, 0.0]
        if self._first:
            message[2:] = float(instructions.wait), float(instructions.measures), instructions.noise
        numbers = torch.tensor(message, dtype=torch.float64).to(self._scale.device, non_blocking=True)
        if self._own:
            numbers[:1] = sum_of_squares(list(self._own.values()))
        dist.all_reduce(numbers, group=self._group)
        mean = sum_of_squares(self._mean) if self._mean else numbers.new_zeros(1)
        return _reading(torch.cat((numbers, mean, self._scale)))


def _reading(numbers: torch.Tensor) -> Callable[[], list[float]]:
    """A function that reads numbers later, without blocking their device until then."""
    if not numbers.is_cuda:
        return numbers.tolist  # type: ignore[no-any-return]
    copy = torch.empty(len(numbers), dtype=numbers.dtype, pin_memory=True).copy_(numbers, non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()

    def read() -> list[float]:
        copied.synchronize()
        return copy.tolist()  # type: ignore[no-any-return]

    return read


def even_batch(samples: float, workers: int) -> float:
    """The evenly shared batch whose mean has the same variance; real shares may differ by one sample.

    The mean of the workers' means has the variance tr/K^2 sum of 1/b_k.
    """
    less, more = divmod(samples, workers)
    return workers**2 / ((workers - more) / less + more / (less + 1)) if less >= 1 else samples
