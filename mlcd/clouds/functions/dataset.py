"""Training data in the bucket that functions read it from: written once, and read by ranges of rows.

Two objects, features (float32) and labels (int32), row after row; a third one, written last, says that both are
whole. A function reads the rows of its part, however many parts there are, and nothing else.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mlcd.planners.functions.workloads import Features, Labels, dataset

BYTES = 4
AT_ONCE_MB = 32
"""What is made in memory before it is written."""
_writing = threading.Lock()
_written: set[tuple[str, ...]] = set()
"""By this process, of data that jobs bring: where it went, the job's folder, the key."""


@dataclass(frozen=True)
class Stored:
    """Data that is in the bucket. A dictionary of it travels with a function's order."""

    key: str
    samples: int
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Of the features of one sample."""
        return BYTES * math.prod(self.shape)


def store(bucket: Any, data: str, samples: int, folder: str = "") -> Stored:
    """Write the data there, unless it is there. `bucket`: Lithops' client."""
    source = dataset(data, folder)
    name = data.replace(":", ".")
    found = Stored(f"mlcd/data/{name}-{samples}", samples, tuple(source.shape))
    with _writing:
        written = (bucket.backend, bucket.bucket, folder, found.key)
        if written in _written or _whole(bucket, found):
            return found
        rows = max(1, AT_ONCE_MB * 1_000_000 // found.row_bytes)
        with tempfile.TemporaryFile() as features, tempfile.TemporaryFile() as labels:
            for first in range(0, samples, rows):
                these, theirs = source.rows(first, min(samples, first + rows), 0)
                features.write(np.ascontiguousarray(these, "<f4").tobytes())
                labels.write(np.ascontiguousarray(theirs, "<i4").tobytes())
            for part, file in (("features", features), ("labels", labels)):
                file.seek(0)
                bucket.put_object(bucket.bucket, f"{found.key}/{part}", file)
        bucket.put_object(bucket.bucket, f"{found.key}/whole", _told(found))
        if _brought(found):
            _written.add(written)
    return found


def _whole(bucket: Any, wanted: Stored) -> bool:
    """Whether that very data is there. Data that a job brings may have changed since: each process writes it anew."""
    if _brought(wanted):
        return False
    if f"{wanted.key}/whole" not in bucket.list_keys(bucket.bucket, f"{wanted.key}/whole"):
        return False
    return bool(json.loads(bucket.get_object(bucket.bucket, f"{wanted.key}/whole")) == json.loads(_told(wanted)))


def _brought(stored: Stored) -> bool:
    """Whether it is data of a job, `module:Class`, and none of MLCD's own."""
    return "." in stored.key


def _told(stored: Stored) -> str:
    return json.dumps(asdict(stored))


def bounds(samples: int, part: int, parts: int) -> tuple[int, int]:
    """The first row of a part, and the first after it: they differ by one row at the most."""
    return samples * part // parts, samples * (part + 1) // parts


def load(bucket: Any, stored: Stored, part: int, parts: int) -> tuple[Features, Labels]:
    """The rows of one part: two reads."""
    first, last = bounds(stored.samples, part, parts)
    features = _read(bucket, f"{stored.key}/features", first, last, stored.row_bytes)
    labels = _read(bucket, f"{stored.key}/labels", first, last, BYTES)
    return np.frombuffer(features, "<f4").reshape(last - first, *stored.shape), np.frombuffer(labels, "<i4")


def _read(bucket: Any, key: str, first: int, last: int, row_bytes: int) -> bytes:
    wanted = {"Range": f"bytes={first * row_bytes}-{last * row_bytes - 1}"}
    found: bytes = bucket.get_object(bucket.bucket, key, extra_get_args=wanted)
    return found
