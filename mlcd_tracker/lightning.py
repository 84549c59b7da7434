"""For Lightning: Trainer(callbacks=[Tracker(64)])."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

import mlcd_tracker


class Tracker(pl.Callback):
    """Report every batch, and checkpoints once they are on disk. `samples`: in one batch of one worker."""

    def __init__(self, samples: float) -> None:
        super().__init__()
        self._samples = samples
        self._saving = False

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Report a step."""
        mlcd_tracker.step(self._samples * trainer.world_size)

    def on_save_checkpoint(self, *_: Any) -> None:
        """Remember that the trainer is about to write a checkpoint. It is on disk once the next batch starts."""
        self._saving = True

    def on_train_batch_start(self, *_: Any) -> None:
        """Report the checkpoint that was written before this batch."""
        if self._saving:
            self._saving = False
            mlcd_tracker.saved()

    def teardown(self, *_: Any, **__: Any) -> None:
        """Report the last checkpoint."""
        self.on_train_batch_start()
