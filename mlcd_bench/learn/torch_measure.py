"""Measure a PyTorch model over the cells of a device (rate, latency, memory), and its operators.

cell        precision x sm_share x batch
seconds     of one pass: the median of 5-40, after two warm-up passes; rate = batch / seconds
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mlcd_bench.learn.table import Row, profile_rows
from mlcd_bench.learn.timing import timed
from mlcd_bench.learn.torch_device import Device
from mlcd_bench.learn.torch_model import Module, Tensor, TorchModel
from mlcd_bench.learn.torch_profile import profile_torch


@dataclass(frozen=True)
class Cells:
    """The varied knobs, by their names."""

    precision: tuple[str, ...] = ("fp32", "bf16")
    sm_share: tuple[int, ...] = (100, 50, 25, 12)
    batch: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)

    KNOBS = ("precision", "sm_share", "batch")

    def all(self) -> Iterator[tuple[str, int, int]]:
        """Every cell."""
        return product(self.precision, self.sm_share, self.batch)


@dataclass(frozen=True)
class Point:
    """The result of a cell; `reason` if it did not run."""

    precision: str
    sm_share: int
    batch: int
    seconds: tuple[float, ...] = ()
    peak_gb: float | None = None
    reason: str = ""

    @property
    def knobs(self) -> dict[str, object]:
        """The cell."""
        return {"precision": self.precision, "sm_share": self.sm_share, "batch": self.batch}

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.batch / statistics.median(self.seconds)

    def row(self) -> dict[str, object]:
        """As a row of points.csv, without the model."""
        middle, high = (float(each) for each in np.quantile(self.seconds, (0.5, 0.95)))
        peak = "" if self.peak_gb is None else self.peak_gb
        return {**self.knobs, "rate": self.rate, "p50_s": middle, "p95_s": high, "peak_gb": peak}


@dataclass
class Loaded:
    """A model on a device at a precision."""

    model: TorchModel
    device: Device
    precision: str

    def __post_init__(self) -> None:
        import torch

        torch.manual_seed(0)
        with torch.device(self.device.name):
            self.module: Module = self.model.build().eval()
        self.facts = _facts(self.model, self.module)
        if self.precision != "fp32":
            self.module = self.module.to(self._dtype)
        for part in self.module.modules():  # otherwise scattered weights are gathered at every pass
            if isinstance(part, torch.nn.RNNBase):
                part.flatten_parameters()

    @property
    def _dtype(self) -> Any:
        import torch

        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]

    def call(self, batch: int) -> Callable[[], object]:
        """One pass at a batch, its input already on the device."""
        import torch

        inputs = self.feed(batch)

        def once() -> object:
            with torch.inference_mode():
                return self.module(*inputs)

        return once

    def feed(self, batch: int) -> tuple[Tensor, ...]:
        """Its inputs, on the device and in its precision."""
        import torch

        with torch.device(self.device.name):
            inputs = self.model.feed(batch)
        return tuple(each.to(self._dtype) if each.is_floating_point() else each for each in inputs)


def _facts(model: TorchModel, module: Module) -> dict[str, object]:
    held = sum(each.numel() * each.element_size() for each in module.parameters())
    count = sum(each.numel() for each in module.parameters())
    names = {"model": model.name, "family": model.family, "inputs": model.inputs}
    return {**names, "weights_mb": held / 2**20, "parameters": count / 1e9}


def measured(loaded: Loaded, sm_share: int, batch: int) -> Point:
    """Measure one cell. A device error means that the cell does not run."""
    device = loaded.device
    try:
        device.forget_peak()
        with device.limited(sm_share):
            call = loaded.call(batch)
            seconds = timed(lambda: device.seconds(call))
        return Point(loaded.precision, sm_share, batch, seconds, device.peak_gb())
    except Exception as error:  # any error of a library: the cell is recorded as failed
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        return Point(loaded.precision, sm_share, batch, reason=reason)


def operators(loaded: Loaded, batch: int, passes: int = 2) -> list[Row]:
    """One pass by operator, as rows of operators.csv."""
    profile = profile_torch(loaded.module, loaded.feed, batch, passes=passes, precision=loaded.precision)
    return profile_rows(loaded.model.name, profile)


def profiled_batches(batches: Sequence[int]) -> tuple[int, ...]:
    """A small and a large one: 8 and 64 where they are."""
    return tuple(batch for batch in (8, 64) if batch in batches) or (batches[0],)
