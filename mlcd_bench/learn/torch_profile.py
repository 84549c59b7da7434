"""The operators of a PyTorch module, by PyTorch's own profiler: on a CPU, or on a GPU by its device time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlcd.core.errors import MissingExtra
from mlcd.planners.serve.nouns import Operator, Profile
from mlcd.planners.serve.operators.onnx_file import MB
from mlcd.planners.serve.operators.passes import Pass, typical

WARM_UP = 2


def profile_torch(
    module: Any,
    example: Callable[[int], Sequence[Any]],
    batch: int = 8,
    *,
    passes: int = 5,
    precision: str = "fp32",
) -> Profile:
    """The median of some passes of a `torch.nn.Module` where its weights are.

    `example`: the arguments of a call, by batch, on the same device. `precision` is what the module was cast to; it is
    told, not changed. Only an operator's own time and memory count, not those of the operators it calls.
    """
    torch = _torch()
    first = next(module.parameters(), None)
    device = first.device.type if first is not None else "cpu"
    arguments = example(batch)
    module.eval()
    with torch.inference_mode():
        for _ in range(WARM_UP):
            module(*arguments)
        found = [_one_pass(torch, module, arguments, device) for _ in range(passes)]
    return typical(batch, found, precision)


def _one_pass(torch: Any, module: Any, arguments: Sequence[Any], device: str) -> Pass:
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of things that only its own authors can mend
        with torch.profiler.profile(activities=kinds, profile_memory=True) as profiler:
            module(*arguments)
            if device == "cuda":
                torch.cuda.synchronize()
        events = list(profiler.key_averages())
    return read_pass(events, device)


def read_pass(events: Iterable[Any], device: str) -> Pass:
    """The operators among a profiler's averages, that took any time on the device.

    Kernels are listed beside the operators that started them, with the same time once more: only operators count.
    """
    operators = [event for event in events if re.fullmatch(r"\w+::\w+", event.key) and event.device_type.name == "CPU"]
    found = {event.key: _operator(event, device) for event in operators}
    return {name: operator for name, operator in found.items() if operator.seconds > 0}


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
