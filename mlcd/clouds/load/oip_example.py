"""Random inputs for a server's model, from the server's description of them.

A server states only types and sizes, not the valid values. Integers are 0 and 1, which are tokens of any vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.clouds.tensors import dtype_of
from mlcd.core.errors import UserError


@dataclass(frozen=True)
class Input:
    """A server's description of an input; -1 in the shape: any length."""

    name: str
    datatype: str
    shape: tuple[int, ...]


def example_inputs(inputs: Sequence[Input], shapes: Mapping[str, int], seed: int) -> dict[str, NDArray[Any]]:
    """One sample. `shapes`: lengths of free axes, by 'INPUT.AXIS'; the first axis counts samples."""
    if not inputs:
        raise UserError("the server does not say what its model's inputs are: state them in its settings")
    free_axes = {f"{each.name}.{axis}" for each in inputs for axis, side in enumerate(each.shape) if axis and side < 0}
    for name in shapes:
        if name not in free_axes:
            raise UserError(
                f"shape '{name}': the model has no such free axis; it has: {', '.join(sorted(free_axes)) or 'none'}"
            )
    rng = np.random.default_rng(seed)
    return {each.name: _filled(each, shapes, rng) for each in inputs}


def _filled(one: Input, shapes: Mapping[str, int], rng: np.random.Generator) -> NDArray[Any]:
    sides = [abs(side) if axis == 0 else _side(one, axis, side, shapes) for axis, side in enumerate(one.shape)]
    try:
        dtype = dtype_of(one.datatype)
    except ValueError as error:
        raise UserError(f"input '{one.name}': {error}") from None
    if dtype.kind == "f":
        return rng.standard_normal(sides).astype(dtype)
    if dtype.kind == "O":
        return np.full(sides, b"a", dtype=object)
    return rng.integers(0, 2, sides).astype(dtype)


def _side(one: Input, axis: int, side: int, shapes: Mapping[str, int]) -> int:
    if side >= 0:
        return side
    name = f"{one.name}.{axis}"
    if name not in shapes:
        raise UserError(f"input '{one.name}' has a free axis {axis}: give its length, such as --shape {name}=128")
    return shapes[name]
