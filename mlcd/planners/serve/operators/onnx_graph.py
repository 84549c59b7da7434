"""Analyses the graph of an ONNX model without running it: weights, attention, inputs that index tables, value sizes.

Sizes are checked because a file of 170 bytes may create a constant of a billion numbers (ConstantOfShape, Expand, Tile,
Range ...). ONNX's shape inference finds the shapes that do not depend on an input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.core.errors import UserError

_SAME_VALUES = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Split", "Slice"}
_SAME_VALUES |= {"Expand", "Concat", "Clip", "Abs"}
"""Operators that keep the values, in another shape, type or order."""
_NEAR_SOFTMAX = {"Cast", "Dropout", "Identity", "Where", "Mul", "Reshape", "Transpose"}
"""Operators between the softmax of an attention and its product with the values."""
_EXTERNAL, _INT64, _BOOL = 1, 7, 9  # of onnx.TensorProto
_TABLES = {"Gather": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
"""For each operator: the inputs with row numbers and with the table of rows."""


def weights(graph: Any) -> tuple[int, Counter[str]]:
    """The number of parameters, and the bytes by number type. Integers such as indices count as bytes only."""
    parameters, kinds = 0, Counter[str]()
    for tensor in tensors(graph):
        elements = prod(tensor.dims)
        kinds[number_type(tensor.data_type).name] += int(elements * item_bytes(tensor.data_type))
        parameters += elements if tensor.data_type not in (_INT64, _BOOL) else 0
    return parameters, kinds


def tensors(graph: Any) -> Iterator[Any]:
    """All tensors of a graph, including constants and subgraphs."""
    for each in _graphs(graph):
        yield from each.initializer
        for node in each.node:
            for attribute in node.attribute:
                yield from (*([attribute.t] if attribute.HasField("t") else ()), *attribute.tensors)


def _external(graph: Any) -> Iterator[tuple[Any, dict[str, str]]]:
    """The tensors stored in other files, each with its location."""
    for tensor in tensors(graph):
        if tensor.data_location == _EXTERNAL:
            yield tensor, {entry.key: entry.value for entry in tensor.external_data}


def external_files(graph: Any) -> set[str]:
    """The files beside the model that hold some of its weights."""
    return {where["location"] for _, where in _external(graph) if "location" in where}


def missing_data(graph: Any, folder: Path) -> tuple[str, str] | None:
    """The first external weight file that is missing or too short, and which of these; None if all are complete."""
    for tensor, where in _external(graph):
        name = where.get("location", "")
        file = folder / name
        if not name or not file.is_file():
            return name, "does not exist"
        length = int(where.get("length", int(prod(tensor.dims) * item_bytes(tensor.data_type))))
        needed = int(where.get("offset", 0)) + length
        if file.stat().st_size < needed:
            return name, f"is truncated: {file.stat().st_size:,} bytes, and at least {needed:,} are needed"
    return None


def table_rows(graph: Any) -> Mapping[str, int]:
    """The number of rows of each table (such as a vocabulary) that an input indexes, by the input's name."""
    makers, users = {name: node for node in graph.node for name in node.output}, _users(graph)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    rows_of = {}
    for each in graph.input:
        tables = [
            rows
            for name in _followed(each.name, users, _passes_on)
            for node in users.get(name, ())
            if (rows := _rows(node, name, makers, shapes)) is not None
        ]
        if tables:
            rows_of[each.name] = min(tables)
    return rows_of


def attends(graph: Any) -> bool:
    """Whether the graph has attention: a fused operator, or a softmax whose result goes into a matrix product."""
    fused = {"Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention"}
    if any(node.op_type in fused for node in graph.node):
        return True
    users = _users(graph)
    softmaxes = [name for node in graph.node if node.op_type == "Softmax" for name in node.output]
    return any(
        node.op_type in ("MatMul", "Einsum")
        for first in softmaxes
        for name in _followed(first, users, lambda node, _: node.op_type in _NEAR_SOFTMAX)
        for node in users.get(name, ())
    )


def _followed(first: str, users: Mapping[str, list[Any]], passes_on: Any) -> Iterable[str]:
    """A value and all values that carry it on, by name."""
    reached, todo = {first}, [first]
    while todo:
        name = todo.pop()
        for node in users.get(name, ()):
            if passes_on(node, name):
                fresh = set(node.output) - reached
                reached |= fresh
                todo += fresh
    return reached


def _passes_on(node: Any, name: str) -> bool:
    return node.op_type in _SAME_VALUES or (node.op_type == "Gather" and node.input[0] == name)


def _rows(node: Any, name: str, makers: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """The number of rows of the table that this operator indexes with the value; None if it does not."""
    for picks, table in _TABLES.get(node.op_type, ()):
        if picks >= len(node.input) or table >= len(node.input) or node.input[picks] != name:
            continue
        shape = _shape(node.input[table], makers, shapes)
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        if shape and axis < len(shape):
            return shape[axis]
    return None


def _shape(name: str, makers: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of a constant, also if it is cast or scaled."""
    while name not in shapes:
        maker = makers.get(name)
        if maker is None:
            return None
        if maker.op_type == "Constant":
            return next((tuple(each.t.dims) for each in maker.attribute if each.name == "value"), None)
        if maker.op_type not in ("Cast", "Identity", "DequantizeLinear"):
            return None
        name = maker.input[0]
    return shapes[name]


def _users(graph: Any) -> Mapping[str, list[Any]]:
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in set(node.input):
            users.setdefault(name, []).append(node)
    return users


def item_bytes(data_type: int) -> float:
    """Bytes of one number of this type."""
    kind = number_type(data_type)
    return 0.5 if kind.name.endswith("int4") else kind.itemsize


def number_type(data_type: int) -> np.dtype[Any]:
    """The numpy type of an ONNX type number."""
    from onnx.helper import tensor_dtype_to_np_dtype

    kind: np.dtype[Any] = np.dtype(tensor_dtype_to_np_dtype(data_type))
    return kind


LARGEST_VALUE = 1 << 30
"""Most bytes of one value."""
_SMALL = 64 << 10
"""Most bytes of a tensor that may be a shape. Of larger ones only the shape matters; copying them would cost memory."""


def check_values(path: Path | str, model: Any) -> None:
    """Refuse a model with a value larger than `LARGEST_VALUE`. This modifies the model: do not use it afterwards."""
    for name, kind, shape in _values(_replace_weights(model)):
        size_bytes = prod(shape) * item_bytes(kind)
        if size_bytes > LARGEST_VALUE:
            raise UserError(
                f"{path}: its value '{name[:80]}' has {prod(shape):,} numbers, {size_bytes / 1e9:,.1f} GB; "
                f"at most {LARGEST_VALUE / 1e9:.1f} GB can be served here"
            )


def _replace_weights(model: Any) -> Any:
    """Replace large weights with inputs of the same shape, in place."""
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
