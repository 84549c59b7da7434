"""Which model belongs to which epoch.

A function writes its model to the bucket under a key of its attempt. The key is committed, in a file on this machine
that is replaced atomically, when all functions of the attempt have succeeded. So no update is lost with a failed
attempt, and none is applied twice.

The ledger learns the epochs of a launch when the launch is settled. A killed launch starts again from its first epoch,
so the model that it started with is kept until the next launch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcd.core.errors import BackendError


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
                f"the model of trial {trial} after epoch {epoch} is not known here: {self.folder} has no record of it"
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
