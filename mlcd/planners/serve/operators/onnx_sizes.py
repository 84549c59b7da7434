"""Checks the sizes of an ONNX model's intermediate values without running it.

A file of 170 bytes may create a constant of a billion numbers (ConstantOfShape, Expand, Tile, Range ...). ONNX's shape
inference finds the shapes that do not depend on an input.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from mlcd.core.errors import UserError
from mlcd.planners.serve.operators.onnx_graph import item_bytes

LARGEST_VALUE = 1 << 30
"""Most bytes of one value."""
_SMALL = 64 << 10
"""Most bytes of a tensor that may be a shape. Of larger ones only the shape matters; copying them would cost memory."""


def check_values(path: Path | str, model: Any) -> None:
    """Refuse a model with a value larger than `LARGEST_VALUE`. It modifies the model, so do not use it afterwards."""
    for name, kind, shape in _values(_without_weights(model)):
        size_bytes = prod(shape) * item_bytes(kind)
        if size_bytes > LARGEST_VALUE:
            raise UserError(
                f"{path}: its value '{name[:80]}' has {prod(shape):,} numbers, {size_bytes / 1e9:,.1f} GB; "
                f"at most {LARGEST_VALUE / 1e9:.1f} GB can be served here"
            )


def _without_weights(model: Any) -> Any:
    """The same graph, with large weights replaced by inputs of the same shape."""
    from onnx.helper import make_tensor_value_info

    graph = model.graph
    large = [tensor for tensor in graph.initializer if tensor.ByteSize() > _SMALL]
    listed = {each.name for each in graph.input}
    for tensor in large:
        if tensor.name not in listed:
            graph.input.append(make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        graph.initializer.remove(tensor)
    return model


def _values(model: Any) -> Iterator[tuple[str, int, list[int]]]:
    """Each value with a known shape: its name, type and shape."""
    from onnx.shape_inference import InferenceError, infer_shapes

    try:
        # Without `data_prop`: that computes the values themselves.
        inferred = infer_shapes(model)
    except (InferenceError, RuntimeError, ValueError):  # ONNX Runtime has a better message
        return
    for graph in _graphs(inferred.graph):
        for each in (*graph.input, *graph.value_info, *graph.output):
            tensor = each.type.tensor_type
            shape = [axis.dim_value for axis in tensor.shape.dim]
            if tensor.elem_type and all(axis > 0 for axis in shape):
                yield each.name, tensor.elem_type, shape


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph, and its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _graphs(inner)
