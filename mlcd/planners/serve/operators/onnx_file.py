"""An ONNX file: what it asks for, how large it is, and one clear line for each thing that can be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.serve.operators.onnx_graph import attends, missing_data, operators, table_rows, weights
from mlcd.planners.serve.operators.onnx_wire import Wholeness, wholeness

MB = 1 << 20
LARGEST_FILE = (1 << 31) - 1
"""Bytes that protobuf reads, of any message."""
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int8": "int8"}
_PRECISIONS |= {"uint8": "int8", "int4": "int4", "uint4": "int4"}


@dataclass(frozen=True)
class Tensor:
    """What goes into a model or comes out of it.

    `dtype`: as numpy names it. `shape`: a number for a fixed axis, a name for a free one. `rows`: of the table that
    its numbers pick from, such as the size of a vocabulary; None if they pick from none.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    rows: int | None = None


@dataclass(frozen=True)
class OnnxModel:
    """What an ONNX file says of its model.

    `weights_mb`: of 2**20 bytes. `operators`: how often each kind stands in the graph, before any fusion.
    `precision`: the type of most of the weights. `attends`: if there is attention.
    """

    path: Path
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights_mb: float
    parameters: int
    operators: Mapping[str, int]
    precision: str = "fp32"
    attends: bool = False

    @cached_property
    def batch(self) -> int | None:
        """The batch that it is fixed to; None if any will do."""
        first = [each.shape[0] for each in self.inputs if each.shape]
        fixed = [axis for axis in first if isinstance(axis, int)]
        return fixed[0] if fixed and len(fixed) == len(first) else None

    @cached_property
    def free_axes(self) -> Mapping[str, str]:
        """The axes that somebody has to size, besides the batch: its name -> the first input that has it."""
        batches = {each.shape[0] for each in self.inputs if each.shape}
        axes = ((axis, each.name) for each in reversed(self.inputs) for axis in each.shape[1:])
        return {axis: name for axis, name in axes if isinstance(axis, str) and axis not in batches}


def open_model(path: Path | str) -> OnnxModel:
    """Read a model's file, without the weights that lie beside it."""
    path = Path(path)
    _check_file(path)
    graph = _parsed(path).graph
    missing = missing_data(graph, path.parent)
    if missing is not None:
        name, why = missing
        raise UserError(f"{path}: its weights are in '{name}', which {why}; put the whole file beside the model")
    rows, given = table_rows(graph), {tensor.name for tensor in graph.initializer}
    asked = [each for each in graph.input if each.name not in given]  # old files list their weights as inputs, too
    inputs = tuple(_tensor(path, each, rows) for each in asked)
    if not inputs:
        raise UserError(f"{path}: the model has no input, so nothing can be asked of it; export it again")
    for each in asked:
        if not each.type.tensor_type.HasField("shape"):
            raise UserError(f"{path}: its input '{each.name}' has no shape; export it with one")
    found = weights(graph)
    kind = max(found.kinds, key=lambda name: found.kinds[name], default="float32")
    return OnnxModel(
        path=path,
        inputs=inputs,
        outputs=tuple(_tensor(path, each, {}) for each in graph.output),
        weights_mb=found.bytes / MB,
        parameters=found.parameters,
        operators=operators(graph),
        precision=_PRECISIONS.get(kind, "fp32"),
        attends=attends(graph),
    )


def _check_file(path: Path) -> None:
    """What can be said before a parser sees it; nothing of a large file is read."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the .onnx file in it")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise UserError(
                f"{path}: {size / 1e9:.1f} GB in one file, and ONNX files end at 2.1 GB (protobuf's limit); save it "
                "with its weights beside it: onnx.save(model, path, save_as_external_data=True)"
            )
        state = wholeness(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    if size == 0:
        raise UserError(f"{path}: is empty; export or copy the model again")
    if state is Wholeness.NOT_ONNX:
        raise UserError(f"{path}: is not an ONNX file; export the model as ONNX, such as with torch.onnx.export")
    if state is Wholeness.CUT_SHORT:
        raise UserError(f"{path}: is cut short: {size:,} bytes are not the whole model; export or copy it again")


def _parsed(path: Path) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("reading ONNX models", "serve") from None
    try:
        return onnx.load(str(path), load_external_data=False)
    except DecodeError:
        raise UserError(f"{path}: is damaged: its graph cannot be parsed; export or copy the model again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error


def _tensor(path: Path, told: Any, rows: Mapping[str, int]) -> Tensor:
    """An input or output; its free axes without a name are called 'INPUT.AXIS'."""
    from onnx.helper import tensor_dtype_to_np_dtype

    kind = told.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UserError(f"{path}: '{told.name}' is a {str(kind).removesuffix('_type')}; only tensors can be served")
    shape = tuple(
        axis.dim_value if axis.dim_value > 0 else axis.dim_param or f"{told.name}.{place}"
        for place, axis in enumerate(told.type.tensor_type.shape.dim)
    )
    dtype = np.dtype(tensor_dtype_to_np_dtype(told.type.tensor_type.elem_type)).name
    return Tensor(told.name, dtype, shape, rows.get(told.name))
