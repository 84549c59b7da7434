"""For Keras: model.fit(..., callbacks=[..., Tracker(256)])."""

from __future__ import annotations

from typing import Any

import keras

import mlcd_tracker


class Tracker(keras.callbacks.Callback):
    """Report every batch. `samples`: in one batch of all workers together.

    `saves`: True if callbacks before this one save at the end of every epoch, as ModelCheckpoint and BackupAndRestore.
    """

    def __init__(self, samples: float, *, saves: bool = False) -> None:
        super().__init__()
        self._samples, self._saves = samples, saves

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Report a step."""
        mlcd_tracker.step(self._samples)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Report the checkpoint that the callbacks before this one have saved."""
        if self._saves:
            mlcd_tracker.saved()
