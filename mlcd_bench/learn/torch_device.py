"""Devices for PyTorch measurements: a CUDA device cut by its multiprocessors, or the CPU for tests.

A share of a GPU is a green context: so many of its streaming multiprocessors, for this process alone. Work reaches it
on the context's own stream where PyTorch has one, else with the context made current (under which some cuDNN kernels
refuse to run). `Cuda.slower_by` times a product under a share, so that a cut that does nothing is noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

GROUP = 8
"""Granularity of green contexts in multiprocessors (compute capability 9.0); shares are rounded to it."""
CUT_SIZE = 4096
"""Rows of the square fp32 product that tests whether a cut works: 0.14 TFLOP, some milliseconds."""


class Device(Protocol):
    """The interface of a device."""

    name: str

    def limited(self, share: int) -> Any:
        """A context in which work uses this percentage of the device."""
        ...

    def seconds(self, call: Callable[[], object]) -> float:
        """The time of one call until its result is available."""
        ...

    def forget_peak(self) -> None:
        """Free caches and reset the peak."""
        ...

    def peak_gb(self) -> float | None:
        """Peak memory since then, in 1e9 bytes; None if it is not measured."""
        ...

    def works(self) -> bool:
        """False once an error has left the device unusable for this process."""
        ...


@dataclass
class Processor:
    """The CPU, with one thread; shares do nothing."""

    name: str = "cpu"

    def limited(self, share: int) -> Any:
        """No effect."""
        return nullcontext()

    def seconds(self, call: Callable[[], object]) -> float:
        """Wall-clock time."""
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    def forget_peak(self) -> None:
        """Memory is not measured."""

    def peak_gb(self) -> float | None:
        """Memory is not measured."""
        return None

    def works(self) -> bool:
        """Always."""
        return True


class Cuda:
    """The first CUDA device of this process."""

    name = "cuda"

    def __init__(self) -> None:
        import torch

        torch.zeros(1, device="cuda")
        self._torch = torch
        self._contexts: dict[int, Any] = {}
        self._streams: dict[int, Any] = {}
        self.by_stream = True

    @cached_property
    def multiprocessors(self) -> int:
        """Of the whole device."""
        return int(self._torch.cuda.get_device_properties(0).multi_processor_count)

    def part(self, share: int) -> int:
        """The multiprocessors of a share, rounded to groups."""
        return max(GROUP, GROUP * round(self.multiprocessors * share / 100 / GROUP))

    @property
    def words(self) -> str:
        """Its name and size."""
        return f"{self._torch.cuda.get_device_name()}, {self.multiprocessors} multiprocessors"

    @contextmanager
    def limited(self, share: int) -> Iterator[None]:
        """A green context of that share; the whole device needs none."""
        if share >= 100:
            yield
            return
        context = self._context(share)
        self._torch.cuda.synchronize()
        if self.by_stream:
            if share not in self._streams:
                self._streams[share] = context.Stream()
            with self._torch.cuda.stream(self._streams[share]):
                yield
                self._torch.cuda.synchronize()
            return
        context.set_context()
        try:
            yield
            self._torch.cuda.synchronize()
        finally:
            context.pop_context()

    def _context(self, share: int) -> Any:
        if share not in self._contexts:
            from torch.cuda.green_contexts import GreenContext

            self._contexts[share] = GreenContext.create(num_sms=self.part(share), device_id=0)
        return self._contexts[share]

    def seconds(self, call: Callable[[], object]) -> float:
        """Timed by CUDA events, with the device idle before the call: as in a server with one batch at a time."""
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1_000

    def forget_peak(self) -> None:
        """Free caches and reset the peak. Otherwise each stream's cuBLAS workspace would count for all others."""
        self._torch.cuda.synchronize()
        clear = getattr(self._torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear is not None:
            clear()
        self._torch.cuda.empty_cache()
        self._torch.cuda.reset_peak_memory_stats()

    def peak_gb(self) -> float | None:
        """PyTorch's peak memory, weights and workspaces included."""
        return float(self._torch.cuda.max_memory_allocated()) / 1e9

    def works(self) -> bool:
        """False after a sticky error, such as an illegal access."""
        try:
            self._torch.cuda.synchronize()
            self._torch.zeros(1, device="cuda")
        except RuntimeError:
            return False
        return True

    def slower_by(self, share: int) -> float:
        """The slowdown of a large product on a share, relative to the whole device."""
        square = self._torch.randn(CUT_SIZE, CUT_SIZE, device="cuda")

        def best(part: int) -> float:
            with self.limited(part):
                return min(self.seconds(lambda: square @ square) for _ in range(6))

        return best(share) / best(100)
