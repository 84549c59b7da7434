"""The inputs of a load test: a few different samples that fit the model's file, or its server's description.

A server states only types and sizes, not the valid values. Integers are 0 and 1, which are tokens of any vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.clouds.load.oip import Oip
from mlcd.clouds.tensors import Port, Tensors, dtype_of
from mlcd.core.errors import UserError
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.operators import example_feed, open_model

EXAMPLES = 8
"""Different samples in a load test."""
MOST_BYTES = 256 << 20
"""Of all samples together: there are fewer of large ones, but at least one."""


def from_file(service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """Samples that fit the model's file. UserError if the file is not a model that can be run."""
    return _from_file(folder / service.path, tuple(service.shapes.items()))


def from_server(server: Oip, service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """From the model's file if there is one, since it says more about the inputs. UserError if the server differs."""
    inputs = server.inputs()
    if not service.path:
        return tuple(example_inputs(inputs, service.shapes, seed) for seed in range(EXAMPLES))
    samples = from_file(service, folder)
    expected, given = {each.name for each in inputs}, set(samples[0])
    if expected and expected != given:
        names = f"{', '.join(sorted(given))}; the server's model wants {', '.join(sorted(expected))}"
        raise UserError(f"{service.path}: its inputs are {names}: is it the same model?")
    return samples


@lru_cache(maxsize=8)
def _from_file(path: Path, shapes: tuple[tuple[str, int], ...]) -> tuple[Tensors, ...]:
    model = open_model(path)
    first = example_feed(model, model.batch or 1, dict(shapes), 0)
    size_bytes = sum(each.nbytes for each in first.values())
    count = max(1, min(EXAMPLES, MOST_BYTES // max(1, size_bytes)))
    return first, *(example_feed(model, model.batch or 1, dict(shapes), seed) for seed in range(1, count))


def example_inputs(inputs: Sequence[Port], shapes: Mapping[str, int], seed: int) -> dict[str, NDArray[Any]]:
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


def _filled(one: Port, shapes: Mapping[str, int], rng: np.random.Generator) -> NDArray[Any]:
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


def _side(one: Port, axis: int, side: int, shapes: Mapping[str, int]) -> int:
    if side >= 0:
        return side
    name = f"{one.name}.{axis}"
    if name not in shapes:
        raise UserError(f"input '{one.name}' has a free axis {axis}: give its length, such as --shape {name}=128")
    return shapes[name]
