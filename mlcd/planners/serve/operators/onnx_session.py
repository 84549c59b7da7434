"""ONNX Runtime: open a session, make example inputs of the right types and sizes, shorten its errors to one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcd.core.errors import MissingExtra, UnknownName, UserError
from mlcd.planners.serve.operators.onnx_file import OnnxModel, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST = 300
"""Most characters of a reason. It is cut in the middle, since the important part may be at its end."""
MOST_READ = 4_000
"""Most characters of a message that are parsed, from both ends: node names can be very long."""
_FATAL_ONLY = 4
"""ONNX Runtime's log level: errors are raised as exceptions anyway."""


def open_session(
    path: Path | str, threads: int = 1, profile_to: Path | None = None, *, stop_spinning: bool = False
) -> Any:
    """An onnxruntime.InferenceSession on the CPU with all graph optimisations, as in a server.

    `profile_to`: prefix of the profile file, which covers all runs until `end_profiling`; a date is appended.
    `stop_spinning`: threads do not spin between passes (they still do within a pass, which is fast).
    """
    try:
        import onnxruntime as runtime
    except ImportError:
        raise MissingExtra("running ONNX models", "serve") from None
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _FATAL_ONLY
    if profile_to is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile_to)
    if stop_spinning:
        options.add_session_config_entry("session.force_spinning_stop", "1")
    with runtime_errors(path):
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@contextmanager
def runtime_errors(path: Path | str) -> Iterator[None]:
    """Turn errors of ONNX Runtime into UserError with its reason."""
    try:
        yield
    except MemoryError:
        raise UserError(f"{path}: this machine has not enough memory for it; try a smaller batch") from None
    except Exception as error:  # its errors have no common base class
        if not type(error).__module__.startswith("onnxruntime") and not isinstance(error, RuntimeError | ValueError):
            raise
        raise UserError(f"{path}: ONNX Runtime cannot run it: {reason(str(error))}") from error


def reason(message: str) -> str:
    """ONNX Runtime's message without its file names and codes, in one line of limited length."""
    text = " ".join(_cut(message, MOST_READ).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"^Load model from .*? failed: ?", "", text)
    text = re.sub(r"(?<!\S)\S*/onnxruntime/\S+:\d+ .*?(?= \S+ was false| [A-Z])", "", text).strip()
    text = re.sub(r'^.*?In Node, \("([^"]*)", (\w+),.*, Error (.*)$', r"node '\1' (\2): \3", text)
    return _cut(text, LONGEST)


def _cut(text: str, most: int) -> str:
    """The text, shortened in the middle if it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


LARGEST_INPUT = 1 << 31
"""Most bytes of one input: more must be a mistake in a shape."""


def example_feed(
    model: OnnxModel, batch: int = 1, shapes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """Random example inputs by name. `shapes`: sizes of the free axes other than the batch, which is the first axis."""
    sizes = dict(shapes or {})
    _check(model, batch, sizes)
    random = np.random.default_rng(seed)
    return {each.name: _values(model, each, _size(each, batch, sizes), random) for each in model.inputs}


def _check(model: OnnxModel, batch: int, sizes: Mapping[str, int]) -> None:
    if model.batch not in (None, batch):
        raise UserError(
            f"{model.path}: its batch is fixed at {model.batch}, so {batch} is not possible; "
            "export it with a free first axis"
        )
    for name, size in sizes.items():
        if name not in model.free_axes and not model.free_axes:
            raise UserError(f"{model.path}: has no axis '{name}' to size; all but the batch are fixed")
        if name not in model.free_axes:
            raise UnknownName("axis", name, model.free_axes)
        if size < 1:
            raise UserError(f"axis '{name}': {size} is not a size; it must be at least 1")
    for name, where in model.free_axes.items():
        if name not in sizes:
            raise UserError(
                f"{model.path}: axis '{name}' of its input '{where}' is free; give its size, such as --shape {name}=128"
            )
        if "batch" in name.lower():
            raise UserError(f"{model.path}: the batch is not the first axis of '{where}'; export it batch first")


def _size(tensor: Tensor, batch: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of all axes; a free axis without a given size is the batch."""
    return tuple(axis if isinstance(axis, int) else sizes.get(axis, batch) for axis in tensor.shape)


def _values(model: OnnxModel, tensor: Tensor, size: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Valid row numbers for inputs that index a table, ones for other integers (masks, lengths), normal floats else."""
    if tensor.dtype == "object":
        return np.full(size, "text", dtype=object)
    kind = np.dtype(tensor.dtype)
    amount = kind.itemsize * float(np.prod([float(axis) for axis in size]))
    if amount > LARGEST_INPUT:
        raise UserError(f"{model.path}: '{tensor.name}' would take {amount / 1e9:,.1f} GB; use a smaller shape")
    if tensor.rows is not None:
        return random.integers(0, tensor.rows, size).astype(kind)
    if kind.kind in "iub":
        return np.ones(size, dtype=kind)
    return random.standard_normal(size, dtype=np.float32).astype(kind)
