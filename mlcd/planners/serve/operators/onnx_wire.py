"""Checks the outermost layer of an ONNX file without reading all of it.

An ONNX file is a protobuf message: a chain of fields, each a tag and then a number, or a length and so many bytes. The
lengths alone show whether it is an ONNX file, and whether it is complete. A parser would only report a failure.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import BinaryIO

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_KINDS = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _VARINT, 6: _BYTES, 7: _BYTES, 8: _BYTES}
_KINDS |= {14: _BYTES, 20: _BYTES, 25: _BYTES, 26: _BYTES}
"""The fields of onnx.ModelProto, and their wire types."""
_IR_VERSION, _GRAPH = 1, 7


class Wholeness(Enum):
    """The result of the check."""

    WHOLE = "whole"
    CUT_SHORT = "cut short"
    NOT_ONNX = "not onnx"


def wholeness(path: Path) -> Wholeness:
    """Skip from field to field; the time does not depend on the file's size."""
    size, seen = path.stat().st_size, set[int]()
    with path.open("rb") as file:
        while file.tell() < size:
            tag = _varint(file)
            if tag is None or _KINDS.get(tag >> 3, tag & 7) != tag & 7 or not 0 < tag >> 3 < 1 << 29:
                return _incomplete(seen)
            seen.add(tag >> 3)
            if not _skip(file, tag & 7, size):
                return _incomplete(seen)
    return Wholeness.WHOLE if _GRAPH in seen else _incomplete(seen)


def _incomplete(seen: set[int]) -> Wholeness:
    # every writer puts the version first: a file without it is not an ONNX file
    return Wholeness.CUT_SHORT if _IR_VERSION in seen else Wholeness.NOT_ONNX


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
        byte = file.read(1)
        if not byte:
            return None
        number |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return number
    return None
