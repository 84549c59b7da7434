"""The squared norms of several workers' gradients, before and after DistributedDataParallel averages them.

Hooks on the parameters see a worker's own gradient once it is complete, before it is averaged; a callback at the end of
the backward pass sees the average. They are there only in the steps that measure. A communication hook would see the
same, but it costs every step: with one, DistributedDataParallel no longer divides while it copies.

The squared norms, and all that the workers must agree on, travel in a small all-reduce after a step that calls for it.
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
from mlcd_tracker.agreement import Heard, Told
from mlcd_tracker.pytorch_norms import factor, norm, sum_of_squares


class Workers:
    """The comparison between the workers of a DistributedDataParallel network."""

    def __init__(self, net: DistributedDataParallel, scaler: Any = None) -> None:
        self._net, self._scaler, self._group = net, scaler, net.process_group
        self._parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
        self._workers, self._first = dist.get_world_size(self._group), dist.get_rank(self._group) == 0
        self._talks = self._measures = False
        self._hooks: list[Any] = []
        self._answer: Callable[[], list[float]] | None = None
        self._steps_ago = 0
        # A device answers later than it is asked; to wait for it in the same step would leave it without work.
        self._lag = 0 if net.device.type == "cpu" else 1
        self.spread = 1 + self._lag

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._talks and self._answer is None

    def begin(self, measures: bool, told: Told) -> None:
        """The workers talk after the step that comes."""
        self._talks, self._measures, self._told = True, measures, told
        self._own: dict[int, torch.Tensor] = {}
        self._mean: list[torch.Tensor] = []
        self._waits, self._averages = False, 0
        self._scale = factor(None, self._net.device)
        if measures:
            for i, parameter in enumerate(self._parameters):
                self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(self._see_own, i)))

    def end(self, samples: float) -> None:
        """The step is done, over so many samples."""
        if self._talks:
            for hook in self._hooks:
                hook.remove()
            self._hooks, self._talks = [], False
            self._answer, self._samples, self._steps_ago = self._exchange(), samples, 0
        else:
            self._steps_ago += 1

    def heard(self) -> Heard | None:
        """What the workers have said; None if they have not, or if it is still under way."""
        if self._answer is None or self._steps_ago < self._lag:
            return None
        local, leave, wait, measures, noise, mean, scale = self._answer()
        self._answer = None
        told = Told(leave > 0, round(wait), measures > 0, noise)
        if not self._measures or self._averages != 1:  # a second average would be one of averages
            return Heard(told, None, self._steps_ago)
        local, mean = local / self._workers / scale**2, mean / scale**2
        return Heard(told, (local, mean, even_batch(self._samples, self._workers), self._workers), self._steps_ago)

    def _see_own(self, i: int, parameter: nn.Parameter) -> None:
        """This worker's gradient, as far as it has been accumulated; the last pass has all of it."""
        assert parameter.grad is not None
        self._own[i] = norm(parameter.grad)
        if self._first and self._net.require_backward_grad_sync and not self._waits:
            self._waits = True
            self._scale = factor(self._scaler, parameter.device)  # the script may change it before the step is over
            # A callback of a callback: DistributedDataParallel's own, which waits for the averages, is in between.
            after = Variable._execution_engine.queue_callback
            after(lambda: after(self._see_mean))

    def _see_mean(self) -> None:
        self._mean = [norm(parameter.grad) for parameter in self._parameters if parameter.grad is not None]
        self._waits, self._averages = False, self._averages + 1

    def _exchange(self) -> Callable[[], list[float]]:
        """One small all-reduce: the sum of all workers' |g_k|^2, and what rank 0 says. How to read the outcome."""
        told, said = self._told, [0.0, float(mlcd_tracker.leaving()), 0.0, 0.0, 0.0]
        if self._first:
            said[2:] = float(told.wait), float(told.measures), told.noise
        numbers = torch.tensor(said, dtype=torch.float64).to(self._scale.device, non_blocking=True)
        if self._own:
            numbers[:1] = sum_of_squares(list(self._own.values()))
        dist.all_reduce(numbers, group=self._group)
        mean = sum_of_squares(self._mean) if self._mean else numbers.new_zeros(1)
        return _reading(torch.cat((numbers, mean, self._scale)))


def _reading(numbers: torch.Tensor) -> Callable[[], list[float]]:
    """How to read numbers without holding up their device until then."""
    if not numbers.is_cuda:
        return numbers.tolist  # type: ignore[no-any-return]
    here = torch.empty(len(numbers), dtype=numbers.dtype, pin_memory=True).copy_(numbers, non_blocking=True)
    there = torch.cuda.Event()
    there.record()

    def read() -> list[float]:
        there.synchronize()
        return here.tolist()  # type: ignore[no-any-return]

    return read


def even_batch(samples: float, workers: int) -> float:
    """The batch that averages as well when it is shared evenly; shares may differ by one sample.

    The mean of the workers' means has the variance tr/K^2 sum of 1/b_k.
    """
    less, more = divmod(samples, workers)
    return workers**2 / ((workers - more) / less + more / (less + 1)) if less >= 1 else samples
