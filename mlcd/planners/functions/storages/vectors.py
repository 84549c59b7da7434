"""Vectors of float32: their encoding and their mean."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
WIRE = np.dtype("<f4")
"""Little-endian on every machine."""


def to_bytes(vector: Vector) -> bytes:
    """Encode a vector."""
    return np.ascontiguousarray(vector, WIRE).tobytes()


def from_bytes(data: bytes | bytearray) -> Vector:
    """Decode a vector, as a writable copy."""
    return np.frombuffer(data, WIRE).astype(np.float32)


def mean(vectors: Iterable[Vector]) -> Vector:
    """Their mean, summed in float64 in the given order: the same order gives the same mean, bit by bit."""
    each = iter(vectors)
    total = next(each).astype(np.float64)
    count = 1
    for vector in each:
        total += vector
        count += 1
    result: Vector = (total / count).astype(np.float32)
    return result
