"""Vectors of float32 as they travel, and their mean."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
WIRE = np.dtype("<f4")
"""The same on every machine: little-endian."""


def to_bytes(vector: Vector) -> bytes:
    """As it travels."""
    return np.ascontiguousarray(vector, WIRE).tobytes()


def from_bytes(data: bytes | bytearray) -> Vector:
    """As it was; it may be written to."""
    return np.frombuffer(data, WIRE).astype(np.float32)


def mean(vectors: Iterable[Vector]) -> Vector:
    """Their mean, summed up in float64 in the order given: the same order is the same mean, to the last bit."""
    each = iter(vectors)
    total = next(each).astype(np.float64)
    count = 1
    for vector in each:
        total += vector
        count += 1
    found: Vector = (total / count).astype(np.float32)
    return found
