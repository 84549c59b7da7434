"""Reads an ONNX file: its inputs and sizes, with a clear one-line error for each possible problem.

The file is a protobuf message: a chain of fields, each a tag followed by a number, or by a length and that many bytes.
The lengths alone show, before parsing, whether it is a complete ONNX file; a parser would only report a failure.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import mlcd.planners.serve.operators.onnx_graph as onnx_graph
from mlcd.core.errors import MissingExtra, UserError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_KINDS = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 6: _BYTES, 7: _BYTES, 8: _BYTES}
_KINDS |= {14: _BYTES, 20: _BYTES, 25: _BYTES, 26: _BYTES}
"""The fields of onnx.ModelProto, and their wire types."""
_IR_VERSION, _GRAPH = 1, 7


class FileCheck(Enum):
    """The result of `check_fields`."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    NOT_ONNX = "not onnx"


def check_fields(path: Path) -> FileCheck:
    """Check the file by skipping from field to field, in a time that does not depend on its size."""
    size, fields = path.stat().st_size, set[int]()
    with path.open("rb") as file:
        while file.tell() < size:
            tag = _varint(file)
            if tag is None or _KINDS.get(tag >> 3, tag & 7) != tag & 7 or not 0 < tag >> 3 < 1 << 29:
                break
            fields.add(tag >> 3)
            if not _skip(file, tag & 7, size):
                break
        else:
            if _GRAPH in fields:
                return FileCheck.COMPLETE
    # every writer puts the version first: a file without it is not an ONNX file
    return FileCheck.TRUNCATED if _IR_VERSION in fields else FileCheck.NOT_ONNX


def _skip(file: BinaryIO, kind: int, size: int) -> bool:
    """Skip a field's content; False if the file is too short, or the wire type is invalid."""
    if kind == _VARINT:
        return _varint(file) is not None
    length = _varint(file) if kind == _BYTES else _WIDTHS.get(kind)
    if length is None or file.tell() + length > size:
        return False
    file.seek(length, os.SEEK_CUR)
    return True


def _varint(file: BinaryIO) -> int | None:
    """A varint: groups of seven bits, the lowest first; None if it is truncated or too long."""
    number = 0
    for place in range(10):
        if not (byte := file.read(1)):
            break
        number |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return number
    return None


MB = 1 << 20
LARGEST_FILE = (1 << 31) - 1
"""protobuf's size limit of a message."""
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int8": "int8"}
_PRECISIONS |= {"uint8": "int8", "int4": "int4", "uint4": "int4"}


@dataclass(frozen=True)
class Tensor:
    """An input or an output of a model.

    `dtype`: numpy's name. `shape`: a number for a fixed axis, a name for a free one. `rows`: rows of the table (such as
    a vocabulary) that its values index; None if they index none.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    rows: int | None = None


@dataclass(frozen=True)
class OnnxModel:
    """The content of an ONNX file.

    `weights_mb`: in MiB. `operators`: the number of each kind in the graph, before any fusion. `precision`: the type of
    most of the weights. `attends`: whether the graph has attention.
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
        """The batch size if it is fixed; None if it is free."""
        first = [each.shape[0] for each in self.inputs if each.shape]
        fixed = [axis for axis in first if isinstance(axis, int)]
        return fixed[0] if fixed and len(fixed) == len(first) else None

    @cached_property
    def free_axes(self) -> Mapping[str, str]:
        """The free axes other than the batch: name -> the first input that has it."""
        batches = {each.shape[0] for each in self.inputs if each.shape}
        axes = ((axis, each.name) for each in reversed(self.inputs) for axis in each.shape[1:])
        return {axis: name for axis, name in axes if isinstance(axis, str) and axis not in batches}


def open_model(path: Path | str) -> OnnxModel:
    """Read a model's file, without loading external weights."""
    path = Path(path)
    _check_file(path)
    graph = _parsed(path).graph
    missing = onnx_graph.missing_data(graph, path.parent)
    if missing is not None:
        name, why = missing
        raise UserError(f"{path}: its weights are in '{name}', which {why}; put the complete file next to the model")
    rows, given = onnx_graph.table_rows(graph), {tensor.name for tensor in graph.initializer}
    true_inputs = [each for each in graph.input if each.name not in given]  # old files also list weights as inputs
    inputs = tuple(_tensor(path, each, rows) for each in true_inputs)
    if not inputs:
        raise UserError(f"{path}: the model has no input; export it again")
    for each in true_inputs:
        if not each.type.tensor_type.HasField("shape"):
            raise UserError(f"{path}: its input '{each.name}' has no shape; export it with one")
    parameters, kinds = onnx_graph.weights(graph)
    kind = max(kinds, key=lambda name: kinds[name], default="float32")
    return OnnxModel(
        path=path,
        inputs=inputs,
        outputs=tuple(_tensor(path, each, {}) for each in graph.output),
        weights_mb=kinds.total() / MB,
        parameters=parameters,
        operators=Counter(node.op_type for node in graph.node),
        precision=_PRECISIONS.get(kind, "fp32"),
        attends=onnx_graph.attends(graph),
    )


def files_of(path: Path) -> dict[str, Path]:
    """The files of a model, including external weights, by their path relative to the model's folder."""
    _check_file(path)
    names = (path.name, *sorted(onnx_graph.external_files(_parsed(path).graph)))
    return {name: path.parent / name for name in names}


def _check_file(path: Path) -> None:
    """Checks before parsing. They read only a small part of a large file."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name the .onnx file in it")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise UserError(
                f"{path}: {size / 1e9:.1f} GB, but one ONNX file holds at most 2.1 GB (protobuf's limit); save the "
                "weights in a second file: onnx.save(model, path, save_as_external_data=True)"
            )
        state = check_fields(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    if size == 0:
        raise UserError(f"{path}: is empty; export or copy the model again")
    if state is FileCheck.NOT_ONNX:
        raise UserError(f"{path}: is not an ONNX file; export the model as ONNX, such as with torch.onnx.export")
    if state is FileCheck.TRUNCATED:
        raise UserError(f"{path}: is truncated: {size:,} bytes are not the whole model; export or copy it again")


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


def _tensor(path: Path, value: Any, rows: Mapping[str, int]) -> Tensor:
    """An input or output. Free axes without a name are called 'INPUT.AXIS'."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UserError(f"{path}: '{value.name}' is a {str(kind).removesuffix('_type')}; only tensors can be served")
    shape = tuple(
        axis.dim_value if axis.dim_value > 0 else axis.dim_param or f"{value.name}.{place}"
        for place, axis in enumerate(value.type.tensor_type.shape.dim)
    )
    dtype = onnx_graph.number_type(value.type.tensor_type.elem_type).name
    return Tensor(value.name, dtype, shape, rows.get(value.name))
