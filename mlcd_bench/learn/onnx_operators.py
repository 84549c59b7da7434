"""Single ONNX operators of a typical size, each as a model of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.core.errors import MissingExtra
from mlcd_bench.learn.zoo import BATCH, IR_VERSION, OPSET


@dataclass(frozen=True)
class Alone:
    """An operator: the shape of its input behind the batch, of its weights, and its attributes.

    `rows`: size of the table that integer inputs index. `batch_axis`: the axis of the batch.
    """

    name: str
    shape: tuple[int, ...]
    weights: Sequence[tuple[int, ...]] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0
    batch_axis: int = 0


_SAME = {"pads": [1, 1, 1, 1]}
OPERATORS = (
    Alone("Conv", (32, 32, 32), [(32, 32, 3, 3)], _SAME),
    Alone("MatMul", (32, 256), [(256, 256)]),
    Alone("ConvTranspose", (32, 16, 16), [(32, 16, 4, 4)], {"strides": [2, 2], **_SAME}),
    Alone("Gather", (26,), [(10_000, 32)], rows=10_000),
    Alone("LSTM", (32, 128), [(1, 512, 128), (1, 512, 128)], {"hidden_size": 128}, batch_axis=1),
    Alone("GRU", (32, 128), [(1, 384, 128), (1, 384, 128)], {"hidden_size": 128}, batch_axis=1),
    Alone("Softmax", (8, 64, 64), (), {"axis": -1}),
    Alone("LayerNormalization", (64, 256), [(256,), (256,)], {"axis": -1}),
    Alone("BatchNormalization", (32, 32, 32), [(32,)] * 4),
    Alone("Relu", (32, 32, 32)),
    Alone("Add", (64, 256), [(256,)]),
)


def write_operators(folder: Path, operators: Sequence[Alone] = OPERATORS) -> list[Path]:
    """Write each as NAME.onnx, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for operator in operators:
        path = folder / f"{operator.name}.onnx"
        path.write_bytes(model_of(operator).SerializeToString())
        paths.append(path)
    return paths


def model_of(operator: Alone) -> Any:
    """A model of one node, with the batch first; operators that need time first get a transposition."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise MissingExtra("building a model", "serve") from None
    random, place = np.random.default_rng(0), f"{operator.name}_in"
    weights = [
        numpy_helper.from_array((0.1 + 0.9 * random.random(shape)).astype(np.float32), f"weight_{i}")
        for i, shape in enumerate(operator.weights)
    ]
    names = [weight.name for weight in weights]
    nodes = []
    given = "input"
    if operator.batch_axis:
        nodes.append(helper.make_node("Transpose", ["input"], [place], perm=[1, 0, 2]))
        given = place
    inputs = [names[0], given] if operator.rows else [given, *names]
    nodes.append(helper.make_node(operator.name, inputs, ["output"], **operator.attributes))
    kind = TensorProto.INT64 if operator.rows else TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        operator.name,
        [helper.make_tensor_value_info("input", kind, (BATCH, *operator.shape))],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
