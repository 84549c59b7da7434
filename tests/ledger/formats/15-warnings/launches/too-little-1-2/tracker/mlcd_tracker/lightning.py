"""For Lightning: Trainer(callbacks=[Tracker(64)])."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

import mlcd_tracker


class Tracker(pl.Callback):
    """Reports every batch, and checkpoints once they are on disk. `samples`: in one batch of one worker."""

    def __init__(self, samples: float) -> None:
        super().__init__()
        self._samples = samples
        self._saving = False

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """A step is done."""
        mlcd_tracker.step(self._samples * trainer.world_size)

    def on_save_checkpoint(self, *_: Any) -> None:
        """The trainer is about to write a checkpoint; it has, when it goes on."""
        self._saving = True

    def on_train_batch_start(self, *_: Any) -> None:
        """The trainer goes on."""
        if self._saving:
            self._saving = False
            mlcd_tracker.saved()

    def teardown(self, *_: Any, **__: Any) -> None:
        """The trainer is done."""
        self.on_train_batch_start()
