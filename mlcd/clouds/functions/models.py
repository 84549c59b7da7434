"""Which model is that of an epoch.

A function leaves a model in the bucket under a name of its attempt's own. It becomes the model of its epoch when it is
committed here, in one file on this machine that is replaced at once: after all functions of the attempt have ended
well. So no update is lost with an attempt that broke, and none is applied twice.

The ledger knows the epochs of a launch once that is settled. One that is killed begins again where it began, however
many epochs it had done: the model that it began with is kept until the next launch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcd.core.errors import BackendError


@dataclass(frozen=True)
class Models:
    """Of all trials of a run: a file for each in this folder, the models themselves in the bucket.

    `done`: the epochs that its trials had behind them when the launch began.
    """

    folder: Path
    bucket: Any
    done: int = 0

    def find(self, trial: int, epoch: int) -> str | None:
        """The key of the model after that epoch; None for the one that training begins with."""
        if epoch == 0:
            return None
        found = self._read(trial).get(str(epoch))
        if found is None:
            raise BackendError(
                f"the model of trial {trial} after epoch {epoch} is not known here: {self.folder} has no record of it"
            )
        return found

    def commit(self, trial: int, epoch: int, key: str) -> None:
        """From now on this is the model after that epoch. Models that nobody will ask for any more go."""
        before = self._read(trial)
        kept = {number: each for number, each in before.items() if int(number) == self.done}
        kept[str(epoch)] = key
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self._file(trial).with_suffix(".new")
        partial.write_text(json.dumps(kept), encoding="utf-8")
        partial.replace(self._file(trial))
        for gone in set(before.values()) - set(kept.values()):
            self.drop(gone)

    def drop(self, key: str) -> None:
        """Forget a model that did not come to count."""
        self.bucket.delete_object(self.bucket.bucket, key)

    def _read(self, trial: int) -> dict[str, str]:
        file = self._file(trial)
        try:
            return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}
        except (ValueError, TypeError):
            raise BackendError(f"{file}: damaged; restore it from a copy, or begin again with mlcd tune") from None

    def _file(self, trial: int) -> Path:
        return self.folder / f"trial-{trial}.json"
