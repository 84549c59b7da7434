"""Example inputs of a model: of the right types and sizes, with valid values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.operators.onnx_file import OnnxModel, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_INPUT = 1 << 31
"""Most bytes of one input: more is a mistake in a shape."""


def example_feed(
    model: OnnxModel, batch: int = 1, shapes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """An array for each input. `shapes`: sizes of the free axes beside the batch, which is the first axis of each."""
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
    """Sizes of the axes; a free axis without a size is the batch."""
    return tuple(axis if isinstance(axis, int) else sizes.get(axis, batch) for axis in tensor.shape)


def _values(model: OnnxModel, tensor: Tensor, size: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Row numbers for inputs that index a table; ones for other integers (masks, lengths); else normal numbers."""
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
