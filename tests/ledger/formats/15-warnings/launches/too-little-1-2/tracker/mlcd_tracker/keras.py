"""For Keras: model.fit(..., callbacks=[..., Tracker(256)])."""

from __future__ import annotations

from typing import Any

import keras

import mlcd_tracker


class Tracker(keras.callbacks.Callback):
    """Reports every batch. `samples`: in one batch of all workers together.

    `saves`: callbacks before this one save at the end of every epoch, as ModelCheckpoint and BackupAndRestore do.
    """

    def __init__(self, samples: float, *, saves: bool = False) -> None:
        super().__init__()
        self._samples, self._saves = samples, saves

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """A step is done."""
        mlcd_tracker.step(self._samples)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """The callbacks before this one have done their part."""
        if self._saves:
            mlcd_tracker.saved()
