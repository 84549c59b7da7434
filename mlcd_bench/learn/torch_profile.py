"""Profiles the operators of a PyTorch module with PyTorch's profiler: on a CPU, or on a GPU by device time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlcd.core.errors import MissingExtra
from mlcd.planners.serve.model_facts import Operator, Profile
from mlcd.planners.serve.operators.onnx_file import MB
from mlcd.planners.serve.operators.onnx_profile import Pass, typical

WARM_UP = 2


def profile_torch(
    module: Any,
    example: Callable[[int], Sequence[Any]],
    batch: int = 8,
    *,
    passes: int = 5,
    precision: str = "fp32",
) -> Profile:
    """The median of some passes of a `torch.nn.Module` on the device of its weights.

    `example`: the arguments of a call, by batch, on the same device. `precision`: of the module, only for the profile.
    Only an operator's own time and memory count, not those of operators that it calls.
    """
    torch = _torch()
    first = next(module.parameters(), None)
    device = first.device.type if first is not None else "cpu"
    arguments = example(batch)
    module.eval()
    with torch.inference_mode():
        for _ in range(WARM_UP):
            module(*arguments)
        measured = [_one_pass(torch, module, arguments, device) for _ in range(passes)]
    return typical(batch, measured, precision)


def _one_pass(torch: Any, module: Any, arguments: Sequence[Any], device: str) -> Pass:
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warnings are not actionable for users
        with torch.profiler.profile(activities=kinds, profile_memory=True) as profiler:
            module(*arguments)
            if device == "cuda":
                torch.cuda.synchronize()
        events = list(profiler.key_averages())
    return read_pass(events, device)


def read_pass(events: Iterable[Any], device: str) -> Pass:
    """The operators in a profiler's averages that took time on the device.

    Kernels are listed beside their operators with the same time: only operators count.
    """
    operators = [event for event in events if re.fullmatch(r"\w+::\w+", event.key) and event.device_type.name == "CPU"]
    operators_by_name = {event.key: _operator(event, device) for event in operators}
    return {name: operator for name, operator in operators_by_name.items() if operator.seconds > 0}


def _operator(event: Any, device: str) -> Operator:
    where = "device" if device == "cuda" else "cpu"
    seconds = getattr(event, f"self_{where}_time_total") / 1e6
    freed_or_taken = getattr(event, f"self_{where}_memory_usage")
    return Operator(event.key, event.count, seconds, max(freed_or_taken, 0) / MB)


def _torch() -> Any:
    try:
        import torch
        import torch.profiler
    except ImportError:
        raise MissingExtra("profiling PyTorch modules", "frameworks") from None
    return torch
