"""The squared norms of one worker's gradients: of the parts of its batch, and of their sum.

Every backward pass of a step is a part. Hooks on the parameters read its gradient before it is added to `.grad`, and
`.grad` afterwards, without a copy. They exist only in the steps that measure.

Symbols   c_i  contribution of part i to the gradient, w_i g_i      w_i  its share of the batch; they sum to one
          K    1 / sum of w_i^2: the number of parts, if equal      s    K sum of |c_i|^2    m    |sum of c_i|^2
          so that E[s] = |G|^2 + tr K/B and E[m] = |G|^2 + tr/B, as between workers: noise.py.

A step with a single pass is compared with the one before: the parts are two steps' gradients, B is two batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

import mlcd_tracker
from mlcd_tracker.agreement import ExchangeResult, Instructions, Observation
from mlcd_tracker.pytorch_norms import factor, norm, sum_of_squares


class Parts:
    """The comparison between parts of one worker's batch, or between consecutive batches."""

    def __init__(self, parameters: Sequence[nn.Parameter], scaler: Any = None) -> None:
        self._parameters, self._scaler = parameters, scaler
        self._hooks: list[Any] = []
        self._single = False
        """Whether the last measured step was a single pass."""
        self._result: ExchangeResult | None = None
        self._exchanging = self.measures = False
        self._clear()

    @property
    def spread(self) -> int:
        """The number of steps that a measurement takes."""
        return 2 if self._single else 1

    @property
    def idle(self) -> bool:
        """Whether no exchange is in progress."""
        return not self._exchanging

    def begin(self, measures: bool, instructions: Instructions) -> None:
        """Prepare an exchange in the coming step, which measures if `measures`."""
        self._exchanging, self._instructions, self.measures = True, instructions, measures
        self._before: dict[int, torch.Tensor] = {}
        self._earlier: tuple[float, list[torch.Tensor]] | None = None
        self._clear()
        if measures:
            for i, parameter in enumerate(self._parameters):
                self._hooks.append(parameter.register_hook(partial(self._record_part, i)))
                self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(self._record_sum, i)))

    def end(self, samples: float) -> None:
        """End a step over so many samples."""
        if not self._exchanging:
            return
        passes = max(self._passes.values(), default=0)
        if self._single and passes == 1 and self._earlier is None:
            self._earlier = samples, self._norms
            self._clear()
            return
        observation = self._observation(samples, passes)
        self._single = passes == 1 or (self._single and passes == 0)
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._before = [], {}
        self._exchanging = self.measures = False
        self._result = ExchangeResult(replace(self._instructions, leave=mlcd_tracker.leaving()), observation)

    def result(self) -> ExchangeResult | None:
        """The result of the exchange; None if it takes another step."""
        result, self._result = self._result, None
        return result

    def _observation(self, samples: float, passes: int) -> Observation | None:
        scale = float(self._scale) if passes else 1.0
        if passes > 1:
            shares = self.shares if len(self.shares) == passes else [1.0] * passes
            parts = sum(shares) ** 2 / sum(share**2 for share in shares)
            local = parts * float(sum_of_squares(self._norms))
            return local / scale**2, float(sum_of_squares(list(self._sums.values()))) / scale**2, samples, parts
        if passes == 1 and self._both and self._earlier is not None and self._earlier[0] == samples:
            local = float(sum_of_squares(self._norms) + sum_of_squares(self._earlier[1])) / 2
            return local / scale**2, float(sum_of_squares(self._both)) / 4 / scale**2, 2 * samples, 2
        return None

    def _clear(self) -> None:
        self._norms: list[torch.Tensor] = []
        self._sums: dict[int, torch.Tensor] = {}
        self._both: list[torch.Tensor] = []
        self._passes: Counter[int] = Counter()
        self.shares: list[float] = []

    def _record_part(self, i: int, gradient: torch.Tensor) -> None:
        """Record the gradient of one pass."""
        part = norm(gradient)
        if not self._norms:  # read it now: the script may change it before the end of the step
            self._scale = factor(self._scaler, gradient.device)
        self._norms.append(part)
        self._passes[i] += 1
        self._sums.setdefault(i, part)

    def _record_sum(self, i: int, parameter: nn.Parameter) -> None:
        """Record the accumulated gradient after a pass."""
        gradient = parameter.grad
        assert gradient is not None
        if self._passes[i] > 1:
            self._sums[i] = norm(gradient)
        elif self._single and self._earlier is None:
            self._before[i] = gradient.clone()
        elif self._single and i in self._before:
            self._both.append(norm(gradient + self._before.pop(i)))
