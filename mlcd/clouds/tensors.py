"""Encodes and decodes tensors in requests and responses of the Open Inference Protocol v2: as JSON, or as binary data.

https://github.com/kserve/open-inference-protocol. Binary data (its binary tensor data extension) follow the JSON, whose
length is in a header: one tensor after the other, little-endian, row by row.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[Any]]
"""By name."""
JSON_LENGTH = "Inference-Header-Content-Length"
"""The header with the length of the JSON, if binary data follow it."""
BINARY = "binary_tensor_data"
"""The extension that a server lists if it supports binary data."""

DATATYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype("bool"),
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    "BYTES": np.dtype(object),
}


def datatype_of(tensor: NDArray[Any]) -> str:
    """The protocol's name of a tensor's data type."""
    if tensor.dtype.kind in "OSU":
        return "BYTES"
    for name, dtype in DATATYPES.items():
        if tensor.dtype == dtype:
            return name
    raise ValueError(f"a tensor of {tensor.dtype}: the protocol supports {', '.join(DATATYPES)}")


@dataclass(frozen=True)
class Port:
    """An input or an output of a model. -1 in the shape means any length."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def mismatch(self, tensor: np.ndarray[Any, Any]) -> str | None:
        """Why this tensor does not fit; None if it does."""
        datatype, shape = datatype_of(tensor), tensor.shape
        fits = len(shape) == len(self.shape) and all(
            expected in (-1, side) for expected, side in zip(self.shape, shape, strict=True)
        )
        if datatype == self.datatype and fits:
            return None
        return f"input '{self.name}' is {self.datatype} {list(self.shape)}, not {datatype} {list(shape)}"


def to_bytes(tensor: NDArray[Any]) -> bytes:
    """The binary data of a tensor, row by row; each text is preceded by its length."""
    if (datatype := datatype_of(tensor)) != "BYTES":
        return np.ascontiguousarray(tensor, DATATYPES[datatype]).tobytes()
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in tensor.ravel().tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def from_bytes(datatype: str, shape: tuple[int, ...], content: bytes | memoryview) -> NDArray[Any]:
    """The tensor with this binary data; numbers are not copied."""
    dtype = dtype_of(datatype)
    if datatype == "BYTES":
        return np.array(_texts(bytes(content)), dtype=object).reshape(shape)
    if len(content) != dtype.itemsize * int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"{len(content)} bytes are no {datatype} tensor of shape {list(shape)}")
    return np.frombuffer(content, dtype).reshape(shape)


def dtype_of(datatype: str) -> np.dtype[Any]:
    """NumPy's data type for the protocol's."""
    if datatype not in DATATYPES:
        raise ValueError(f"datatype '{datatype}': expected one of {', '.join(DATATYPES)}")
    return DATATYPES[datatype]


def pack(what: str, tensors: Tensors, head: Mapping[str, Any], binary: bool) -> tuple[bytes, int | None]:
    """A message with `inputs` or `outputs`, and the length of its JSON if binary data follow."""
    described: list[dict[str, Any]] = []
    contents: list[bytes] = []
    for name, tensor in tensors.items():
        one: dict[str, Any] = {"name": name, "datatype": datatype_of(tensor), "shape": list(tensor.shape)}
        if binary:
            contents.append(to_bytes(tensor))
            one["parameters"] = {"binary_data_size": len(contents[-1])}
        else:
            one["data"] = [text.decode() if isinstance(text, bytes) else text for text in tensor.ravel().tolist()]
        described.append(one)
    message = json.dumps({**head, what: described}, separators=(",", ":")).encode()
    return message + b"".join(contents), len(message) if binary else None


def unpack(what: str, body: bytes, json_length: int | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The head of a message and its tensors. A `ValueError` says what is wrong with the message."""
    message = json.loads(body if json_length is None else body[:json_length])
    if not isinstance(message, dict) or not isinstance(message.get(what), list):
        raise ValueError(f"expected an object with a list of '{what}'")
    rest = memoryview(body)[json_length or len(body) :]
    tensors: dict[str, NDArray[Any]] = {}
    for one in message[what]:
        try:
            name, datatype, shape = str(one["name"]), str(one["datatype"]), tuple(int(side) for side in one["shape"])
            size = (one.get("parameters") or {}).get("binary_data_size")
            if size is None:
                flat = _values(one["data"], datatype)
                tensors[name] = flat.reshape(shape)
            else:
                tensors[name] = from_bytes(datatype, shape, rest[:size])
                rest = rest[size:]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a tensor of '{what}' lacks its {error}") from None
    return {key: value for key, value in message.items() if key != what}, tensors


def _values(data: Any, datatype: str) -> NDArray[Any]:
    """The values as a flat array; the protocol allows flat and nested lists."""
    dtype = dtype_of(datatype)
    return np.array(data, dtype=object).ravel() if datatype == "BYTES" else np.array(data, dtype=dtype).ravel()


def _texts(content: bytes) -> list[bytes]:
    texts: list[bytes] = []
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at)
        texts.append(content[at + 4 : at + 4 + length])
        at += 4 + length
    return texts
