"""The contents of the functions' bucket: training data, written once and read by ranges of rows; and models.

Data are two objects, features (float32) and labels (int32), row after row; a third one, written last, marks both as
complete. A function reads only the rows of its part.

A function writes its model under a key of its attempt. The key is committed, in a file on this machine that is replaced
atomically, when all functions of the attempt have succeeded. So no update is lost with a failed attempt, and none is
applied twice. The ledger learns the epochs of a launch when the launch is settled. A killed launch starts again from
its first epoch, so the model that it started with is kept until the next launch.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.core.errors import BackendError
from mlcd.planners.functions.workloads import Features, Labels, dataset

BYTES = 4
AT_ONCE_MB = 32
"""Size of the pieces in which the data are generated and written."""
_writing = threading.Lock()
_written: set[tuple[str, ...]] = set()
"""Job data that this process has written: backend, bucket, the job's folder, key."""


@dataclass(frozen=True)
class Stored:
    """Data in the bucket. Sent to functions as a dictionary."""

    key: str
    samples: int
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of one sample."""
        return BYTES * math.prod(self.shape)

    @property
    def is_job_data(self) -> bool:
        """Whether the data come from the job's own code, `module:Class`."""
        return "." in self.key

    @property
    def as_json(self) -> str:
        """The content of the object that marks the data as complete."""
        return json.dumps(asdict(self))


def store(bucket: Any, data: str, samples: int, folder: str = "") -> Stored:
    """Write the data to the bucket unless they exist. `bucket`: Lithops' client."""
    source = dataset(data, folder)
    name = data.replace(":", ".")
    stored = Stored(f"mlcd/data/{name}-{samples}", samples, tuple(source.shape))
    with _writing:
        identity = (bucket.backend, bucket.bucket, folder, stored.key)
        if identity in _written or _is_complete(bucket, stored):
            return stored
        rows = max(1, AT_ONCE_MB * 1_000_000 // stored.row_bytes)
        with tempfile.TemporaryFile() as features, tempfile.TemporaryFile() as labels:
            for first in range(0, samples, rows):
                features_rows, labels_rows = source.rows(first, min(samples, first + rows), 0)
                features.write(np.ascontiguousarray(features_rows, "<f4").tobytes())
                labels.write(np.ascontiguousarray(labels_rows, "<i4").tobytes())
            for part, file in (("features", features), ("labels", labels)):
                file.seek(0)
                bucket.put_object(bucket.bucket, f"{stored.key}/{part}", file)
        bucket.put_object(bucket.bucket, f"{stored.key}/whole", stored.as_json)
        if stored.is_job_data:
            _written.add(identity)
    return stored


def _is_complete(bucket: Any, wanted: Stored) -> bool:
    """Whether these data are in the bucket. A job's own data may have changed: each process writes them anew."""
    key = f"{wanted.key}/whole"
    if wanted.is_job_data or key not in bucket.list_keys(bucket.bucket, key):
        return False
    return bool(json.loads(bucket.get_object(bucket.bucket, key)) == json.loads(wanted.as_json))


def bounds(samples: int, part: int, parts: int) -> tuple[int, int]:
    """The first row of a part, and the first after it. Parts differ by at most one row."""
    return samples * part // parts, samples * (part + 1) // parts


def load(bucket: Any, stored: Stored, part: int, parts: int) -> tuple[Features, Labels]:
    """Read the rows of one part, in two requests."""
    first, last = bounds(stored.samples, part, parts)
    features = _read(bucket, f"{stored.key}/features", first, last, stored.row_bytes)
    labels = _read(bucket, f"{stored.key}/labels", first, last, BYTES)
    return np.frombuffer(features, "<f4").reshape(last - first, *stored.shape), np.frombuffer(labels, "<i4")


def _read(bucket: Any, key: str, first: int, last: int, row_bytes: int) -> bytes:
    wanted = {"Range": f"bytes={first * row_bytes}-{last * row_bytes - 1}"}
    content: bytes = bucket.get_object(bucket.bucket, key, extra_get_args=wanted)
    return content


@dataclass(frozen=True)
class Models:
    """The models of a run: for each trial a file in this folder; the models themselves are in the bucket.

    `done`: completed epochs of the trials at the start of the launch.
    """

    folder: Path
    bucket: Any
    done: int = 0

    def find(self, trial: int, epoch: int) -> str | None:
        """The key of the model after that epoch; None for the initial model."""
        if epoch == 0:
            return None
        key = self._read(trial).get(str(epoch))
        if key is None:
            raise BackendError(
                f"the model of trial {trial} after epoch {epoch} cannot be found: {self.folder} has no record of it"
            )
        return key

    def commit(self, trial: int, epoch: int, key: str) -> None:
        """Make this the model after that epoch, and delete models that are no longer needed."""
        before = self._read(trial)
        kept = {number: each for number, each in before.items() if int(number) == self.done}
        kept[str(epoch)] = key
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self._file(trial).with_suffix(".new")
        partial.write_text(json.dumps(kept), encoding="utf-8")
        partial.replace(self._file(trial))
        for gone in set(before.values()) - set(kept.values()):
            self.delete(gone)

    def delete(self, key: str) -> None:
        """Delete a model."""
        self.bucket.delete_object(self.bucket.bucket, key)

    def _read(self, trial: int) -> dict[str, str]:
        file = self._file(trial)
        try:
            return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}
        except (ValueError, TypeError):
            raise BackendError(f"{file}: damaged; restore it from a copy, or begin again with mlcd tune") from None

    def _file(self, trial: int) -> Path:
        return self.folder / f"trial-{trial}.json"
